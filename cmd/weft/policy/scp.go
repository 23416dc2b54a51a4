package policy

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// writeScp writes the producers of a 5G core, and what consumers reach them by.
func writeScp(t *cli.Table, _, answer proto.Message) {
	m := answer.(*api.GetScpResponse)
	writeList(t, m, "producers")
	if len(m.Endpoints) > 0 {
		fmt.Fprintln(t)
		writeList(t, m, "endpoints")
	}
	odd := proto.CloneOf(m)
	odd.Functions = slices.DeleteFunc(odd.Functions, func(f *api.ScpFunction) bool { return f.Balanced })
	if len(odd.Functions) > 0 {
		fmt.Fprintf(t, "\nnot balanced: consumers reach these by their own addresses, or not at all\n")
		writeList(t, odd, "functions")
	}
	front := m.Front
	switch m.FrontBy {
	case "host":
		front += ", in a host, at " + m.FrontAddress
	case "packet-in":
		front += ", by packet-in, from " + m.FrontAddress + " (each packet of a discovery passes the controller; scp.listen gives the front a host)"
	}
	if m.FrontReason != "" {
		front += "\nwhy: " + cli.Plain(m.FrontReason)
	}
	fmt.Fprintf(t, "\nfront: %s\nNRF: %s\n", front, m.Nrf)
}
