import sys
import weft

app = weft.Stage("blocker", filter={"eth_type": "0x0800", "ip_proto": 6, "tcp_dst": 23})

@app.packet
def block(packet):
    packet.add_flow(app.filter, priority=20000, idle_timeout=60)  # no actions: the switch drops
    return weft.DROP

app.run(sys.argv[1])  # http://HOST:PORT, ws://HOST:PORT or grpc://HOST:PORT
