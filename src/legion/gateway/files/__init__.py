"""What daemon and gateway share: the files of the gateway's folder."""
