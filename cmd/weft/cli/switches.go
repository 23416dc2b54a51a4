package cli

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// SwitchText returns a switch as requests have it: the whole DPID for a number, and a name as it
// is, which the controller knows.
func SwitchText(text string) (string, error) {
	if sw, err := flow.ParseDPID(text); err == nil {
		return sw.String(), nil
	}
	if api.CheckName("switch", text) != nil {
		return "", fmt.Errorf("switch %.80q: want a name, or a datapath identifier of up to 16 hex digits; weft get switches has all", text)
	}
	return text, nil
}

// PlaceText reads SWITCH:PORT, or SWITCH/PORT.
func PlaceText(text string) (*api.Location, error) {
	i := strings.LastIndexAny(text, ":/")
	if i < 0 {
		return nil, fmt.Errorf("%.80q: want SWITCH:PORT, such as s1:3", text)
	}
	sw, err := SwitchText(text[:i])
	if err != nil {
		return nil, err
	}
	at, err := flow.ParseLocation("0" + text[i:])
	if err != nil {
		return nil, fmt.Errorf("%.80q: want SWITCH:PORT, such as s1:3", text)
	}
	return &api.Location{Dpid: sw, Port: uint32(at.Port)}, nil
}

// DPIDFlag is a switch as the value of a flag; the zero value is none. A name becomes a DPID
// when the command has a controller to ask.
type DPIDFlag struct{ Text string }

func (d *DPIDFlag) String() string { return d.Text }
func (d *DPIDFlag) Type() string   { return "SWITCH" }

// Set reads what SwitchText reads.
func (d *DPIDFlag) Set(s string) (err error) {
	d.Text, err = SwitchText(s)
	return err
}

// Switch returns the switch that a text names, by its number or its name.
func (c *Controller) Switch(text string) (flow.DPID, error) {
	text, err := SwitchText(text)
	if err != nil {
		return 0, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if sw, err := flow.ParseDPID(text); err == nil {
		return sw, nil
	}
	names, err := c.switchNames()
	if err != nil {
		return 0, fmt.Errorf("switch %s: ask for the names of switches: %w", text, err)
	}
	for _, sw := range slices.Sorted(maps.Keys(names)) {
		if names[sw] == text {
			return flow.ParseDPID(sw)
		}
	}
	return 0, api.Errorf(codes.InvalidArgument, "switch %.80q: none has this name alone, and it is no datapath identifier of up to 16 hex digits; weft get switches has all", text)
}

// AskNames asks for the names of switches now, for what is said later: a switch that is forgotten
// has none.
func (c *Controller) AskNames() { c.switchNames.known() }

// resolveFlags puts the DPIDs of switches in place of the names that flags have.
func (c *Controller) resolveFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if d, is := f.Value.(*DPIDFlag); is && err == nil {
			var sw flow.DPID
			if sw, err = c.Switch(d.Text); err == nil {
				d.Text = sw.String()
			}
		}
	})
	return err
}

// namesOf are the names of switches by their DPIDs, or why they are not known.
type namesOf func() (map[string]string, error)

// askNames returns a function that asks for the names of switches once.
func askNames(ctx context.Context, gateway api.GatewayClient) namesOf {
	return sync.OnceValues(func() (map[string]string, error) {
		m, err := gateway.ListSwitchNames(ctx, &api.ListSwitchNamesRequest{})
		if err != nil {
			return nil, err
		}
		names := map[string]string{}
		for _, x := range m.GetNames() {
			names[x.Dpid] = x.Name
		}
		return names, nil
	})
}

// known returns the names; none, if they are not known: a table can do without.
func (n namesOf) known() map[string]string {
	if n == nil {
		return nil
	}
	names, err := n()
	if err != nil {
		return nil
	}
	return names
}

// namesKey is the context's key for what askNames returns.
type namesKey struct{}

// namesFor returns the names that the controller of a command has; nil, if it has asked none.
func namesFor(cmd *cobra.Command) namesOf {
	if cmd == nil || cmd.Context() == nil {
		return nil
	}
	names, _ := cmd.Context().Value(namesKey{}).(namesOf)
	return names
}

// Readable returns a text for people, such as an error's: with the names of switches that the
// command has asked for.
func Readable(cmd *cobra.Command, text string) string { return readable(text, namesFor(cmd)) }

// dpidText is a DPID in a text, what stands before it, and a slash before the number of a port. In
// names of files and in URIs there is none.
var dpidText = regexp.MustCompile(`(^|[\s:>,(\[])([0-9a-f]{16})(/\d|[^0-9A-Za-z_/-]|$)`)

// ShortDPID returns a DPID without its leading zeros.
func ShortDPID(dpid string) string {
	if short := strings.TrimLeft(dpid, "0"); short != "" {
		return short
	}
	return dpid
}

// readable returns a text with the names of switches, or their DPIDs without leading zeros, in
// place of whole DPIDs.
func readable(text string, names namesOf) string {
	for at := 0; ; {
		m := dpidText.FindStringSubmatchIndex(text[at:])
		if m == nil {
			return text
		}
		from, to := at+m[4], at+m[5]
		dpid := text[from:to]
		is := names.known()[dpid]
		if is == "" && strings.HasPrefix(dpid, "0000") { // else it may be something else
			is = ShortDPID(dpid)
		}
		if is == "" {
			is = dpid
		}
		rest := text[to:]
		if is != dpid && strings.HasPrefix(rest, "/") {
			rest = ":" + rest[1:]
		}
		text, at = text[:from]+is+rest, from+len(is)
	}
}
