# How the scripts of this folder choose a port for a server that cannot choose one itself. To be sourced.

# A port below those that the system gives to connections: a server cannot have one of these although nobody listens there.
# Another server may have it, so whoever starts one looks whether it could start, and takes another port if not.
any_port() { echo $((20000 + RANDOM % 12000)); }
