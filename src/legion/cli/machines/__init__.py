"""Commands about machines: invite, join, list, steer and remove them, and the files that run one."""
