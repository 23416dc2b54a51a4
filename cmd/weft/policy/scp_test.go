package policy

import (
	"bytes"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// TestScpTable: an empty line is between the producers and the end points.
func TestScpTable(t *testing.T) {
	var b bytes.Buffer
	list := &cli.Table{Writer: tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)}
	writeScp(list, nil, &api.GetScpResponse{Endpoints: []*api.ScpEndpoint{{Instance: "98cbc37d"}}})
	list.Flush()
	if !strings.Contains(b.String(), "\n\nEND POINT") {
		t.Errorf("the end points do not follow an empty line:\n%s", b.String())
	}
}

// Beside a front that nobody reaches stands why.
func TestScpFrontReason(t *testing.T) {
	var b bytes.Buffer
	list := &cli.Table{Writer: tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)}
	writeScp(list, nil, &api.GetScpResponse{Front: "passing", FrontBy: "host", FrontAddress: "10.0.0.2:7777", FrontReason: "there is no network namespace x"})
	list.Flush()
	if !strings.Contains(b.String(), "front: passing, in a host, at 10.0.0.2:7777\nwhy: there is no network namespace x\n") {
		t.Error(b.String())
	}
}
