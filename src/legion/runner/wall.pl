my ($said, $all, $read, $scopes, $carried, $readable, $writable) = map { 0 + $_ } splice @ARGV, 0, 7;
open my $status, ">&=", $said or die "handle: $!" if $said >= 0;
/=/ and $ENV{$`} = $' for splice @ARGV, 0, $carried;
my $of_file = 0xC007 & $all;
my $rules = syscall 444, pack("QQQ", $all, 0, $scopes), $scopes ? 24 : 8, 0;
sub allow { syscall 445, $rules, 1, pack("Ql", $_[1], fileno $_[0]), 0 }
sub below { sysopen my $at, $_[0], 0x280000 or return; allow($at, -d $at ? $_[1] : $_[1] & $of_file) }
below($_, $read) for splice @ARGV, 0, $readable;
below($_, $all) for splice @ARGV, 0, $writable;
-c $_ ? allow($_, $of_file) : -f _ && allow($_, 4) for \*STDIN, \*STDOUT, \*STDERR;
if ($rules < 0 or syscall 446, $rules, 0) { print STDERR "Landlock: $!\n" } else { exec { $ARGV[0] } @ARGV }
print STDERR "execvp $ARGV[0]: $!\n";
syswrite $status, "{\"start-failed\": true}\n" if $status;
exit 127;
