# Chooses a port for a server that cannot choose one itself. To be sourced by the scripts of this folder.

# Prints a port below the range that the system uses for outgoing connections. A port of that range can be in use although no
# server listens on it. Another server may already use the port, so the caller must check whether its server has started, and
# try another port if not.
any_port() { echo $((20000 + RANDOM % 12000)); }
