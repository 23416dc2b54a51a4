package policy

import (
	"bytes"
	"strings"
	"testing"
	"text/tabwriter"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func TestReadForward(t *testing.T) {
	for text, want := range map[string]*api.NatForward{
		"tcp:80=10.0.0.3:8080":              {Protocol: "tcp", Port: 80, To: "10.0.0.3", ToPort: 8080},
		"udp:198.51.100.1:53=10.0.0.3":      {Protocol: "udp", Address: "198.51.100.1", Port: 53, To: "10.0.0.3"},
		"tcp:198.51.100.1:80=10.0.0.3:81":   {Protocol: "tcp", Address: "198.51.100.1", Port: 80, To: "10.0.0.3", ToPort: 81},
		"tcp:[2001:db8::1]:80=[fd00::3]:81": {Protocol: "tcp", Address: "2001:db8::1", Port: 80, To: "fd00::3", ToPort: 81},
		"udp:53=fd00::3":                    {Protocol: "udp", Port: 53, To: "fd00::3"},
	} {
		if got, err := readForward(text); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "tcp", "tcp=10.0.0.3", "tcp:0=10.0.0.3", "tcp:80", "tcp:80=10.0.0.3:x", "tcp:a:b:80=10.0.0.3", "tcp:65536=10.0.0.3", "tcp:2001:db8::1:80=fd00::3", "tcp:80=[fd00::3]", "tcp:80=[fd00::3]:0", "tcp:[2001:db8::1]=fd00::3"} {
		if got, err := readForward(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// TestNatTable: that a pool is exhausted is seen in the list.
func TestNatTable(t *testing.T) {
	var b bytes.Buffer
	list := &cli.Table{Writer: tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)}
	writeAnswer(list, (&api.NatGateway{Name: "internet", State: "exhausted", Reason: "no free address and port for a new connection: pool 198.51.100.1, ports 1 to 2; widen them", ExhaustedPackets: 7}).ProtoReflect())
	list.Flush()
	for _, want := range []string{"REFUSED", "internet", "7", "exhausted: no free address and port", "pool 198.51.100.1"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in\n%s", want, b.String())
		}
	}
}
