use Socket; use Errno;
my ($how, @words) = @ARGV; $SIG{ALRM} = sub { exit 1 }; alarm 8;
sub to { my ($host, $port) = @_; my $six = $host =~ /:/; socket my $s, $six ? AF_INET6 : AF_INET, SOCK_STREAM, 0;
  my $at = Socket::inet_pton($six ? AF_INET6 : AF_INET, $host) or return;
  connect($s, $six ? Socket::pack_sockaddr_in6($port, $at) : pack_sockaddr_in($port, $at)) ? $s : undef }
if ($how eq "call") {
  my ($number, @n) = map { /^-?\d+$/ ? 0 + $_ : "$_" } @words;
  exit(syscall($number, @n) < 0 && grep({ $!{$_} } qw(EPERM EACCES ENOSYS)) ? 1 : 0) }
if ($how eq "tcp") { my $host = shift @words; for (@words) { exit 0 if to($host, $_) } exit 1 }
if ($how eq "udp") { socket my $s, AF_INET, SOCK_DGRAM, 0;
  exit(send($s, "legion", 0, pack_sockaddr_in($words[1], inet_aton($words[0]))) ? 0 : 1) }
if ($how eq "unix") { (my $name = $words[0]) =~ s/^@/\0/; socket my $s, AF_UNIX, SOCK_STREAM, 0;
  exit(connect($s, pack("Sa*", AF_UNIX, $name)) ? 0 : 1) }
my ($host, $port) = @words; my $s = to("127.0.0.1", 3128) or exit 1; my $said = "";
$SIG{ALRM} = sub { exit 0 }; # It refuses at once, so now it tries to connect.
if ($how eq "socks") { syswrite $s, "\5\1\0"; sysread $s, $said, 2;
  syswrite $s, "\5\1\0\3" . chr(length $host) . $host . pack("n", $port);
  exit(sysread($s, $said, 2) == 2 && $said eq "\5\0" ? 0 : 1) }
syswrite $s, $how eq "get" ? "GET http://$host:$port/ HTTP/1.0\r\n\r\n" : "CONNECT $host:$port HTTP/1.1\r\n\r\n";
sysread $s, $said, 99;
exit($said =~ /^\S+ (200|502)/ && ($1 == 200 || $host =~ /^[\d.]+$|^\[/) ? 0 : 1);
