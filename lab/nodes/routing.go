package nodes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
)

// The routing of hybrid nodes and routers is FRR's: a process of each of its
// daemons for each node, in the node's namespace, with files of its own.

// frrDir is where Debian has the daemons of FRR.
const frrDir = "/usr/lib/frr"

// Routing is what the nodes of a lab run of FRR.
type Routing struct{ *layout.Lab }

func RoutingOf(s *layout.Lab) Routing { return Routing{s} }

// FRRDaemons are the daemons of a node, in the order in which they start.
func (s Routing) FRRDaemons() []string {
	list := []string{"zebra"}
	if s.Topology.Routing.BFD != 0 {
		list = append(list, "bfdd")
	}
	list = append(list, "ospfd")
	if !s.Topology.Routing.IPv4Only {
		list = append(list, "ospf6d")
	}
	return list
}

// NeedRouting reports the daemons that this machine does not have.
func (s Routing) NeedRouting() error {
	if len(s.Nodes) == 0 {
		return nil
	}
	if s.HasHybrid() && s.Weft == "" {
		weft, err := exec.LookPath("weft")
		if err != nil {
			return fmt.Errorf("hybrid nodes need the program weft, which lab.Options.Weft does not name: %w", err)
		}
		s.Weft = weft
	}
	for _, d := range s.FRRDaemons() {
		if _, err := os.Stat(filepath.Join(frrDir, d)); err != nil {
			return fmt.Errorf("%s not found: hybrid nodes and routers need FRR: install it with `apt-get install --no-install-recommends frr`", filepath.Join(frrDir, d))
		}
	}
	return nil
}

// RoutingDir is the directory of a node's routing.
func (s Routing) RoutingDir(n *layout.Node) string { return filepath.Join(s.Dir(), "frr", n.Short) }

// startFRR starts a daemon of a node's routing, and returns once it has detached.
// What is in the kernel stays if the daemon ends, and for a while after its start.
func (s Routing) startFRR(ctx context.Context, n *layout.Node, daemon string) error {
	dir := s.RoutingDir(n)
	file := func(name string) string { return filepath.Join(dir, name) }
	args := []string{
		"-d", "-f", file(daemon + ".conf"), "-i", file(daemon + ".pid"), "-z", file("zserv.api"),
		"--vty_socket", dir, "-P", "0", "--log", "file:" + file(daemon+".log"), "--log-level", "warnings",
	}
	switch daemon {
	case "zebra":
		args = append(args, "-r", "-K", "30")
	case "bfdd":
		args = append(args, "--bfdctl", file("bfdd.sock"))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(frrDir, daemon), args...)
	cmd.Dir, cmd.Env = "/", machine.Mark(os.Environ(), s.Name)
	out, err := asowner.Create(file(daemon + ".out"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := machine.InNetns(machine.HostNetns(s.Name, n.Name), cmd.Run); err != nil {
		said, _ := asowner.ReadFile(out.Name())
		return fmt.Errorf("start %s: %w; %s", daemon, err, machine.LastLine(string(said)))
	}
	return nil
}

// FRRConfig is the configuration of a daemon of a node's routing.
func (s Routing) FRRConfig(n *layout.Node, daemon string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	r := &s.Topology.Routing
	line("hostname %s", n.Name)
	switch daemon {
	case "zebra":
		// Sessions of the node live as long as any way to its loopback does.
		line("route-map loopback permit 10\n set src %s", n.Loopback)
		line("ip protocol ospf route-map loopback")
		if !r.IPv4Only {
			line("route-map loopback6 permit 10\n set src %s", n.Loopback6)
			line("ipv6 protocol ospf6 route-map loopback6")
		}
	case "bfdd":
		line("bfd\n profile lab\n  transmit-interval %d\n  receive-interval %[1]d\n  detect-multiplier 3", time.Duration(r.BFD).Milliseconds())
	case "ospfd":
		s.ospfInterfaces(n, line, "ip ospf", "area 0")
		line("router ospf\n ospf router-id %s", n.Loopback)
		line(" timers throttle spf 0 50 500\n timers throttle lsa all 0\n timers lsa min-arrival 0")
	case "ospf6d":
		s.ospfInterfaces(n, line, "ipv6 ospf6", "area 0.0.0.0")
		line("router ospf6\n ospf6 router-id %s", n.Loopback)
		line(" timers throttle spf 0 50 500\n timers lsa min-arrival 0")
	}
	return b.String()
}

// ospfInterfaces writes the interfaces of a node for a version of OSPF, each with the
// area last: one that is told so begins with the timers that it has then. Those of
// hosts and of the controllers' machine are passive: nothing that comes in there
// is OSPF's.
func (s Routing) ospfInterfaces(n *layout.Node, line func(string, ...any), ospf, area string) {
	r := &s.Topology.Routing
	passive := []string{"lo"}
	if s.Topology.InBand() && s.Topology.Control.At == n.Name {
		passive = append(passive, ControlIface)
	}
	for _, p := range n.Routed() {
		if p.Role == layout.RoleGateway {
			passive = append(passive, p.Interface)
			continue
		}
		line("interface %s", p.Interface)
		line(" %s hello-interval %d\n %[1]s dead-interval %[3]d\n %[1]s retransmit-interval 1", ospf,
			int(time.Duration(r.Hello).Seconds()), int(time.Duration(r.Dead).Seconds()))
		if p.Role == layout.RoleLink {
			line(" %s network point-to-point", ospf)
		}
		if r.BFD != 0 {
			line(" %s bfd\n %[1]s bfd profile lab", ospf)
		}
		line(" %s %s", ospf, area)
	}
	for _, iface := range passive {
		line("interface %s\n %s passive\n %[2]s %s", iface, ospf, area)
	}
}
