import sys
import weft

url, server = sys.argv[1:]  # of a worker; the Ethernet address of the portal's web server
app = weft.Stage("portal", holds=True)

@app.packet
def decide(packet):
    f = packet.fields
    if "portal" not in packet.held_by:
        return weft.NEXT  # both hosts are approved
    if f["eth_type"] == "0x0806" or f.get("udp_dst") == "67" and f["eth_dst"] == "ff:ff:ff:ff:ff:ff":
        return weft.NEXT  # ARP, and the search for an address
    if server not in (f["eth_src"], f["eth_dst"]):
        return weft.DROP
    if f["eth_dst"] == server and b"word=sesame" in packet.data:
        app.approve(f["eth_src"])
    return weft.NEXT  # the server's pages, and what is sent to it

app.run(url)
