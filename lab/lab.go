package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

// Lab is a handle on a lab that is up. Any process may hold one; its methods
// may be called from several goroutines.
type Lab struct {
	state *layout.Lab // as it was when the handle was made; links change in the file
	nodes.Commands
	traffic.Meter
	linkChanges
}

func handleOf(s *layout.Lab) *Lab {
	return &Lab{s, nodes.CommandsOf(s), traffic.MeterOf(s), linkChanges{s}}
}

// Open returns a handle on a lab that is up.
func Open(name string) (*Lab, error) {
	s, err := layout.Load(name)
	if err != nil {
		return nil, err
	}
	if !s.Ready {
		return nil, fmt.Errorf("lab %s is half made: wait for `weft lab up`, or remove it with `weft lab down %s`", name, name)
	}
	return handleOf(s), nil
}

// Exists reports whether anything of a lab is there to take down: files or
// namespaces.
func Exists(name string) bool {
	if topology.CheckName(name) != nil {
		return false
	}
	_, err := os.Stat(machine.Dir(name))
	return err == nil || len(machine.LabNetns(name)) > 0
}

// OpenOnly returns a handle on the one lab that is up; if there is none or
// several the error says so.
func OpenOnly() (*Lab, error) {
	names, err := machine.Names()
	switch {
	case err != nil:
		return nil, err
	case len(names) == 0:
		return nil, errors.New("no lab is up: bring one up with `weft lab up TOPOLOGY`")
	case len(names) > 1:
		return nil, fmt.Errorf("%d labs are up: say which with --name; allowed: %s", len(names), strings.Join(names, ", "))
	}
	return Open(names[0])
}

// Down takes the lab down; see the function Down.
func (l *Lab) Down(ctx context.Context) error { return Down(ctx, l.state.Name) }

// Name is the lab's name.
func (l *Lab) Name() string { return l.state.Name }

// Created is when the lab was brought up.
func (l *Lab) Created() time.Time { return l.state.Created }

// State says whether the lab's processes run: "up", or "broken: " and which do not.
func (l *Lab) State() string { return health(l.state) }

// Topology is what the lab was brought up with, completed. It is the lab's
// own: do not change it.
func (l *Lab) Topology() *topology.Topology { return l.state.Topology }

// Dir is the lab's directory: its sockets and its daemons' logs.
func (l *Lab) Dir() string { return l.state.Dir() }

// ControllerSocket is the path of the Unix socket the switches connect to: that
// of the ControllerDirect, who listens there itself, if the lab has one, else
// that of the first controller's relay. Empty without a controller.
func (l *Lab) ControllerSocket() string {
	socks := l.state.ControllerSockets()
	if len(socks) == 0 {
		return ""
	}
	return socks[max(0, slices.Index(l.state.Topology.Controllers, topology.ControllerDirect))]
}

// Host returns a host by name; the error lists those there are.
func (l *Lab) Host(name string) (topology.Host, error) { return l.state.FindHost(name) }

// HostNetns is the name of a host's network namespace, for ip-netns(8).
func (l *Lab) HostNetns(host string) string { return machine.HostNetns(l.state.Name, host) }

// SwitchNetns is the name of the namespace all switches run in.
func (l *Lab) SwitchNetns() string { return machine.SwitchNetns(l.state.Name) }

// SwitchDPID returns the datapath id of a switch.
func (l *Lab) SwitchDPID(name string) (topology.DPID, error) {
	if s, ok := l.state.Topology.SwitchByName(name); ok {
		return s.DPID, nil
	}
	return 0, l.noSwitch(name)
}

func (l *Lab) noSwitch(name string) error {
	return fmt.Errorf("lab %s has no switch %q; `weft lab graph` shows those there are", l.state.Name, name)
}

// Bridge is the name Open vSwitch knows a switch by: its own, unless that is
// too long for an interface.
func (l *Lab) Bridge(name string) (string, error) {
	if b, ok := l.state.Bridges[name]; ok {
		return b, nil
	}
	return "", l.noSwitch(name)
}

// VSCtl runs ovs-vsctl on the lab's database and returns what it printed.
func (l *Lab) VSCtl(ctx context.Context, args ...string) (string, error) {
	out, err := nodes.SwitchesOf(l.state).Shared().VSCtl(ctx, args...)
	return string(out), err
}

// AppCtl runs ovs-appctl on the lab's ovs-vswitchd.
func (l *Lab) AppCtl(ctx context.Context, args ...string) (string, error) {
	o := nodes.SwitchesOf(l.state).Shared()
	out, err := o.Run(ctx, "ovs-appctl", append([]string{"-t", filepath.Join(o.Dir, "ovs-vswitchd.ctl")}, args...)...)
	return string(out), err
}

// OfCtl runs an ovs-ofctl command on a switch: OfCtl(ctx, "s1", "add-flow",
// "actions=NORMAL"). It speaks the newest OpenFlow version the switch allows
// of 1.3 and 1.0.
func (l *Lab) OfCtl(ctx context.Context, sw, command string, args ...string) (string, error) {
	s, ok := l.state.Topology.SwitchByName(sw)
	if !ok {
		return "", l.noSwitch(sw)
	}
	o := nodes.SwitchesOf(l.state).OVSOf(sw)
	argv := append([]string{"-O", strings.Join(s.Protocols, ","), "--timeout=20", command,
		"unix:" + filepath.Join(o.Dir, l.state.Bridges[sw]+".mgmt")}, args...)
	if version := "OpenFlow13"; strings.Contains(argv[1], version) {
		argv[1] = version
	}
	out, err := o.Run(ctx, "ovs-ofctl", argv...)
	return string(out), err
}

// OfctlDumpFlows is the flow entries of a switch, a line each, as ovs-ofctl
// dump-flows prints them.
func (l *Lab) OfctlDumpFlows(ctx context.Context, sw string) ([]string, error) {
	out, err := l.OfCtl(ctx, sw, "dump-flows")
	var flows []string
	for _, line := range strings.Split(out, "\n") {
		if line = strings.TrimSpace(line); strings.Contains(line, "actions=") {
			flows = append(flows, line)
		}
	}
	return flows, err
}

// Status is one line of the list of labs.
type Status struct {
	Name        string    `json:"name"`
	State       string    `json:"state"` // "up", "half made", "broken: …"
	Created     time.Time `json:"created"`
	Switches    int       `json:"switches"`
	Hosts       int       `json:"hosts"`
	Links       int       `json:"links"` // between switches
	Controllers []string  `json:"controllers"`
	Programs    int       `json:"programs"` // of hosts
	Running     int       `json:"running"`  // of them; 0 if that is not known
}

// List is every lab of this machine, half made and broken ones included.
func List(ctx context.Context) ([]Status, error) {
	names, err := machine.Names()
	if err != nil {
		return nil, err
	}
	all := make([]Status, 0, len(names))
	for _, name := range names {
		st := Status{Name: name, State: "half made"}
		if s, err := layout.Load(name); err == nil {
			st.Created, st.Controllers = s.Created, s.Topology.Controllers
			st.Switches, st.Hosts, st.Links = len(s.Topology.Switches), len(s.Topology.Hosts), len(s.Topology.Links)
			if s.Ready {
				if st.State = health(s); st.State == "up" && len(s.Todo) > 0 {
					st.State = "half applied: apply its file again"
				}
			}
			for _, p := range handleOf(s).Programs(ctx) {
				st.Programs++
				if p.State == keeper.ProgramRunning {
					st.Running++
				}
			}
		}
		all = append(all, st)
	}
	return all, nil
}

// health says whether the lab's processes still run.
func health(s *layout.Lab) string {
	for _, p := range []struct{ socket, what string }{
		{keeper.Socket(s.Name), "keeper"},
		{filepath.Join(s.Dir(), "db.sock"), "ovsdb-server"},
		{filepath.Join(s.Dir(), "ovs-vswitchd.ctl"), "ovs-vswitchd"},
	} {
		if err := machine.CheckSocket(p.socket); errors.Is(err, os.ErrPermission) {
			return "not known: only root may ask"
		} else if err != nil {
			return "broken: " + p.what + " does not run"
		}
	}
	return "up"
}
