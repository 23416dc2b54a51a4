package policy

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// writeScp writes the producers of a 5G core, and what consumers reach them by.
func writeScp(t *cli.Table, _, answer proto.Message) {
	m := answer.(*api.GetScpResponse)
	writeList(t, m, "producers")
	if len(m.Endpoints) > 0 {
		t.Row("")
		writeList(t, m, "endpoints")
	}
	front := m.Front
	switch m.FrontBy {
	case "host":
		front += ", in a host, at " + m.FrontAddress
	case "packet-in":
		front += ", by packet-in, from " + m.FrontAddress + " (each packet of a discovery passes the controller; scp.listen gives the front a host)"
	}
	fmt.Fprintf(t, "\nfront: %s\nNRF: %s\n", front, m.Nrf)
}
