package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// OVS is one private Open vSwitch: its own database, directory and namespace.
type OVS struct {
	lab    string
	Dir    string
	Netns  string
	Node   string // whose own it is
	urgent bool   // before other processes: a node's neighbours give it up if it does not forward for seconds
}

// Switches are the Open vSwitches of a lab and the bridges in them.
type Switches struct{ *layout.Lab }

func SwitchesOf(s *layout.Lab) Switches { return Switches{s} }

// Shared is that of all switches but hybrid nodes that have their own.
func (s Switches) Shared() OVS {
	return OVS{lab: s.Name, Dir: s.Dir(), Netns: machine.SwitchNetns(s.Name), urgent: s.HasHybrid()}
}

// OVSOf is the Open vSwitch of a switch.
func (s Switches) OVSOf(name string) OVS {
	if s.Topology.OVS != topology.OVSOwn {
		return s.Shared()
	}
	if sw, ok := s.Topology.SwitchByName(name); ok && sw.Kind == topology.KindHybrid {
		return OVS{lab: s.Name, Dir: filepath.Join(s.Dir(), s.Bridges[name]), Netns: machine.HostNetns(s.Name, name), Node: name, urgent: true}
	}
	return s.Shared()
}

// AllOVS is every Open vSwitch of the lab, that of most switches first.
func (s Switches) AllOVS() []OVS {
	all := []OVS{s.Shared()}
	if s.Topology.OVS == topology.OVSOwn {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.Kind == topology.KindHybrid {
				all = append(all, s.OVSOf(n.Name))
			}
		}
	}
	return all
}

// command is an Open vSwitch tool with the paths of this instance.
func (o OVS) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/"
	cmd.WaitDelay = machine.OutputDelay
	cmd.Env = machine.Mark(append(os.Environ(), "OVS_RUNDIR="+o.Dir, "OVS_DBDIR="+o.Dir, "OVS_LOGDIR="+o.Dir, "OVS_SYSCONFDIR="+o.Dir), o.lab)
	return cmd
}

// Run runs a tool to its end and returns its standard output. It runs in the
// instance's namespace, where Down finds it if its starter is killed.
func (o OVS) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := o.command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := machine.InNetns(o.Netns, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out.Bytes(), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}

func (o OVS) VSCtl(ctx context.Context, args ...string) ([]byte, error) {
	return o.Run(ctx, "ovs-vsctl", append([]string{"--db=unix:" + filepath.Join(o.Dir, "db.sock"), "--timeout=60"}, args...)...)
}

// daemon starts a daemon in the instance's namespace and returns once it is
// ready and has detached.
func (o OVS) daemon(ctx context.Context, name string, args ...string) error {
	args = append(args,
		"--unixctl="+filepath.Join(o.Dir, name+".ctl"), "--pidfile="+filepath.Join(o.Dir, name+".pid"),
		"--log-file="+filepath.Join(o.Dir, name+".log"), "-vconsole:off", "-vsyslog:off", "--no-chdir", "--detach")
	// Each port takes descriptors: allow as many as this process may have.
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	argv := append([]string{fmt.Sprintf("--nofile=%d", files.Max), name}, args...)
	if o.urgent {
		argv = append([]string{argv[0], "nice", "-n", "-10"}, argv[1:]...)
	}
	err := machine.InNetns(o.Netns, func() error {
		return o.command(ctx, "prlimit", argv...).Run()
	})
	if err != nil {
		return fmt.Errorf("start %s: %w; %s", name, err, o.lastLog(name))
	}
	return nil
}

// lastLog is the end of a daemon's log, for error messages.
func (o OVS) lastLog(name string) string {
	b, err := os.ReadFile(filepath.Join(o.Dir, name+".log"))
	if err != nil {
		return "it wrote no log"
	}
	if len(b) > 500 {
		b = b[len(b)-500:]
	}
	return "its log ends with: " + strings.TrimSpace(string(b))
}

// StartDatabase creates and serves the database.
func (o OVS) StartDatabase(ctx context.Context) error {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of Open vSwitch: %w", err)
	}
	db := filepath.Join(o.Dir, "conf.db")
	if _, err := o.Run(ctx, "ovsdb-tool", "create", db, ovsSchema); err != nil {
		return err
	}
	return o.serveDatabase(ctx)
}

func (o OVS) serveDatabase(ctx context.Context) error {
	return o.daemon(ctx, "ovsdb-server", filepath.Join(o.Dir, "conf.db"), "--remote=punix:"+filepath.Join(o.Dir, "db.sock"))
}

func (o OVS) StartSwitching(ctx context.Context) error {
	return o.daemon(ctx, "ovs-vswitchd", "unix:"+filepath.Join(o.Dir, "db.sock"))
}

// StartSwitches writes every bridge and port in one transaction, starts the
// switch daemon on it, and checks that each port got its number.
func (o OVS) StartSwitches(ctx context.Context, s *layout.Lab) error {
	if _, err := o.VSCtl(ctx, append([]string{"--no-wait"}, SwitchesOf(s).transaction(o)...)...); err != nil {
		return err
	}
	if err := o.StartSwitching(ctx); err != nil {
		return err
	}
	// Without --no-wait this returns once the daemon has done all of the above.
	if _, err := o.VSCtl(ctx, "set", "Open_vSwitch", ".", "external-ids:lab="+s.Name); err != nil {
		return fmt.Errorf("%w; %s", err, o.lastLog("ovs-vswitchd"))
	}
	if err := o.CheckPorts(ctx, s); err != nil {
		return err
	}
	for _, sw := range s.Topology.Switches {
		if sw.Kind != topology.KindRouter && SwitchesOf(s).OVSOf(sw.Name) == o {
			s.NotifyNode(sw.Name, "it has its ports")
		}
	}
	return nil
}

// transaction is the arguments of ovs-vsctl for all switches of an instance. The
// switches speak to their controllers through sockets in the instance's
// directory, whatever the controller's address: their namespace has no
// addresses. Hybrid nodes may be in band (control.go). A bridge that is given a
// controller later than its making loses its entries.
func (s Switches) transaction(o OVS) []string {
	args := s.InitOVS()
	ports := map[string][]*layout.End{}
	for i := range s.Wires {
		for _, e := range s.Wires[i].Ends() {
			if e.Bridged() {
				ports[e.Node] = append(ports[e.Node], e)
			}
		}
	}
	for i := range s.Nodes {
		for _, p := range s.Nodes[i].Routed() {
			if p.InternalInterface != "" {
				ports[s.Nodes[i].Name] = append(ports[s.Nodes[i].Name], &layout.End{Iface: p.InternalInterface, Port: p.Internal})
			}
		}
	}
	for i := range s.Topology.Switches {
		sw := &s.Topology.Switches[i]
		if sw.Kind == topology.KindRouter || s.OVSOf(sw.Name) != o {
			continue
		}
		args = append(args, s.AddBridge(sw, fmt.Sprintf("@c%d", i))...)
		for _, e := range ports[sw.Name] {
			args = append(args, AddPort(s.Bridges[sw.Name], e)...)
		}
	}
	return args
}

// InitOVS is the arguments of ovs-vsctl that come first in a database.
func (s Switches) InitOVS() []string {
	args := []string{"--", "init", "--", "set", "Open_vSwitch", ".", "other_config:vlan-limit=2"}
	if s.TLS != nil {
		args = append(args, setSSL(s.TLS)...)
	}
	return args
}

// AddBridge is the arguments of ovs-vsctl that make a switch without its ports;
// id begins those of its controllers in the transaction.
func (s Switches) AddBridge(sw *topology.Switch, id string) []string {
	br := s.Bridges[sw.Name]
	args := []string{"--", "add-br", br, "--", "set", "bridge", br, "datapath_type=netdev", fmt.Sprintf("other_config:dp-desc=%q", s.Description(sw.Name))}
	if sw.Controlled() {
		args = append(args, settings(sw)...)
		args = append(args, "other_config:disable-in-band=true")
	} else {
		args = append(args, "fail_mode="+topology.FailStandalone)
	}
	if targets := s.Targets(sw); targets != nil {
		args = append(args, setControllers(br, id, targets)...)
	}
	return args
}

// setControllers is the arguments of ovs-vsctl that have a bridge connect there.
func setControllers(br, id string, targets []string) (args []string) {
	var refs []string
	for k, target := range targets {
		ref := fmt.Sprintf("%s_%d", id, k)
		refs = append(refs, ref)
		args = append(args, "--", "--id="+ref, "create", "controller", fmt.Sprintf("target=%q", target),
			"connection_mode=out-of-band", "max_backoff=1000", "inactivity_probe=5000")
	}
	if refs == nil {
		return []string{"--", "clear", "bridge", br, "controller"}
	}
	return append(args, "--", "set", "bridge", br, "controller="+strings.Join(refs, ","))
}

// settings is what a file says of a switch that has controllers, as columns of its bridge.
func settings(s *topology.Switch) []string {
	return []string{"fail_mode=" + s.FailMode, "protocols=" + strings.Join(s.Protocols, ","), "other_config:datapath-id=" + s.DPID.String()}
}

// Targets is where a switch connects to, for each controller.
func (s Switches) Targets(sw *topology.Switch) []string {
	switch {
	case !sw.Controlled():
		return nil
	case sw.Kind == topology.KindHybrid && s.Topology.InBand():
		return s.nodeTargets(sw.Name)
	}
	targets := s.ControllerSockets()
	for k, socket := range targets {
		targets[k] = s.target(k, socket)
	}
	return targets
}

// AddPort is the arguments of ovs-vsctl that make an interface a port.
func AddPort(bridge string, e *layout.End) []string {
	return []string{"--", "add-port", bridge, e.Iface,
		"--", "set", "interface", e.Iface, fmt.Sprintf("ofport_request=%d", e.Port)}
}

func (o OVS) CheckPorts(ctx context.Context, s *layout.Lab) error {
	out, err := o.VSCtl(ctx, "--format=json", "--columns=name,ofport,error", "list", "Interface")
	if err != nil {
		return err
	}
	var table struct{ Data [][3]any }
	if err := json.Unmarshal(out, &table); err != nil {
		return fmt.Errorf("read the ports from ovs-vsctl: %w", err)
	}
	got := map[string]int{}
	why := map[string]string{}
	for _, row := range table.Data {
		name, _ := row[0].(string)
		if n, ok := row[1].(float64); ok {
			got[name] = int(n)
		}
		why[name], _ = row[2].(string)
	}
	for i := range s.Wires {
		for _, e := range s.Wires[i].Ends() {
			if e.Bridged() && SwitchesOf(s).OVSOf(e.Node) == o && got[e.Iface] != int(e.Port) {
				return fmt.Errorf("open vSwitch made %s (%s) port %d: %s; %s", e, e.Iface, got[e.Iface], why[e.Iface], o.lastLog("ovs-vswitchd"))
			}
		}
	}
	return nil
}

// ChangePorts runs ovs-vsctl with the arguments that args makes for each end of
// w that is a port of Open vSwitch.
func (s Switches) ChangePorts(ctx context.Context, w *layout.Wire, args func(bridge string, e *layout.End) []string) error {
	for _, o := range s.AllOVS() {
		var all []string
		for _, e := range w.Ends() {
			if e.Bridged() && s.OVSOf(e.Node) == o {
				all = append(all, args(s.Bridges[e.Node], e)...)
			}
		}
		if all == nil {
			continue
		}
		if _, err := o.VSCtl(ctx, all...); err != nil {
			return err
		}
	}
	return nil
}

// SetSwitch has a switch be as the topology says, or connect to its controllers.
func (s Switches) SetSwitch(ctx context.Context, name string, controllers bool) error {
	sw, _ := s.Topology.SwitchByName(name)
	br := s.Bridges[name]
	if !sw.Controlled() {
		return nil
	}
	args := append([]string{"set", "bridge", br}, settings(sw)...)
	if controllers {
		args = setControllers(br, "@c", s.Targets(sw))
	}
	_, err := s.OVSOf(name).VSCtl(ctx, args...)
	return err
}
