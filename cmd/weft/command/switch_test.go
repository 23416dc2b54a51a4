package command

import (
	"context"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// leaving is a controller with three switches. s1 and s3 are away, and s3 comes back just when it is
// forgotten.
type leaving struct {
	northbound
	forgot []string
}

func (l *leaving) ListSwitches(context.Context, *api.ListSwitchesRequest) (*api.ListSwitchesResponse, error) {
	return &api.ListSwitchesResponse{Switches: []*api.Switch{{Dpid: s1}, {Dpid: s2, Connected: true}, {Dpid: s3}}}, nil
}

func (l *leaving) ListSwitchNames(context.Context, *api.ListSwitchNamesRequest) (*api.ListSwitchNamesResponse, error) {
	if len(l.forgot) > 0 {
		return &api.ListSwitchNamesResponse{}, nil
	}
	return &api.ListSwitchNamesResponse{Names: []*api.SwitchName{{Dpid: s1, Name: "attic"}}}, nil
}

func (l *leaving) ForgetSwitch(_ context.Context, r *api.ForgetSwitchRequest) (*api.ForgetSwitchResponse, error) {
	l.forgot = append(l.forgot, r.Dpid)
	return &api.ForgetSwitchResponse{Known: true, Connected: r.Dpid == s3}, nil
}

// TestForgetAway: weft switch forget --away forgets the switches that are away, and no others.
func TestForgetAway(t *testing.T) {
	l := &leaving{}
	l.serveAs(t, l)
	status, out, errs := weftCommand("switch", "forget", "--away")
	if status != 0 || out != "switch  attic  is forgotten\nswitch  3      is connected and learnt anew\n" {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if got := strings.Join(l.forgot, " "); got != s1+" "+s3 {
		t.Errorf("%s are forgotten", got)
	}
	if status, out, errs = weftCommand("switch", "forget", "--away", "-o", "json"); status != 0 || !strings.Contains(out, `"dpid": "`+s1+`"`) {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	for _, args := range [][]string{{}, {"1", "--away"}, {"1", "2"}} {
		if status, _, errs := weftCommand(append([]string{"switch", "forget"}, args...)...); status != 2 {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
	}
}
