package scp

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// Types are 3GPP's, those that operators define, and what instances have: others are mistakes.
func TestTypes(t *testing.T) {
	g := newRig(t)
	g.register(5, "HOME_MADE")
	for _, name := range []string{"", "UDM", "udm", "5G_EIR", "CUSTOM_OCS", "home_made"} {
		if err := checkType(g.proxy, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"XYZ", "AMFS", "CUSTOM_", "*"} {
		err := checkType(g.proxy, name)
		if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "AMF, ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
