"""The files of the gateway's folder, through which daemon and gateway communicate."""
