"""A stage that uses all that there is, for the tests of deploy/apps."""

import sys

import weft

app = weft.Stage("everything")


@app.packet
def everything(packet: weft.Packet) -> str:
    packet.add_group(1, "select", [{"actions": ["output:1"]}, {"actions": ["output:2"]}])
    packet.add_flow(packet.match("in_port", "eth_type", "ip_proto", "tcp_dst"), ["group:1"], hard_timeout=5)
    packet.fence()
    packet.send("output:1")
    packet.delete_flow(packet.match("eth_dst"), priority=7)
    packet.delete_group(2)
    host = app.call("hosts.FindHost", {"address": packet.fields["ipv4_src"]})
    try:
        app.call("hosts.FindHost", {"address": "192.0.2.1"})
        missing = "found"
    except weft.Error as e:
        missing = f"404: {e.code}"
    packet.send("in_port", data=f"{host['ipv4'][0]} at {host['mac']}; {missing}".encode(), dpid="0x9")
    return weft.DONE


app.run(sys.argv[1])
