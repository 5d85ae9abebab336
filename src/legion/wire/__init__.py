"""What travels between daemon and clients: plain dataclasses, cheap to import, nothing but data.

Every answer names its shape in `schema`, as `legion.<name>/<version>`. Fields are only ever added within a version.
"""
