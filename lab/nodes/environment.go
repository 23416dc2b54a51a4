package nodes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// Environment adds to an environment the variables that describe a host to the
// processes in it, and the mark of the lab.
func (s Hosts) Environment(env []string, h *topology.Host) []string {
	env = append(env[:len(env):len(env)], "WEFT_LAB="+s.Name, "WEFT_LAB_HOST="+h.Name)
	if h.HasIPv4() {
		env = append(env, "WEFT_LAB_IPV4="+h.IPv4.Addr().String())
	}
	if h.HasIPv6() {
		env = append(env, "WEFT_LAB_IPV6="+h.IPv6.Addr().String())
	}
	if m, ok := s.Manage[h.Name]; ok {
		env = append(env, "WEFT_MANAGE_ADDRESS="+m.Address.String(), "WEFT_CONTROLLER_ADDRESS="+m.Controller.String())
	}
	return machine.Mark(env, s.Name)
}

// EnvironmentAt is environment for a host or a switch.
func (s Hosts) EnvironmentAt(env []string, node string) []string {
	h, ok := s.Topology.HostByName(node)
	if !ok {
		h = &topology.Host{Name: node}
	}
	return append(s.Environment(env, h), s.switchEnvironment(node)...)
}

// switchEnvironment returns the variables for processes at a switch. With them, the tools of
// Open vSwitch use the lab's own daemons, and vtysh the node's routing.
func (s Hosts) switchEnvironment(name string) (env []string) {
	if bridge, ok := s.Bridges[name]; ok {
		o := SwitchesOf(s.Lab).OVSOf(name)
		env = append(env, "WEFT_LAB_BRIDGE="+bridge, "OVS_RUNDIR="+o.Dir, "OVS_DBDIR="+o.Dir)
	}
	if n := s.Node(name); n != nil {
		env = append(env, "WEFT_LAB_ROUTING="+RoutingOf(s.Lab).RoutingDir(n))
	}
	return env
}

// ProgramEnvironment is the environment of a program: that of who brought the
// lab up, in which weft is the program that did so, and its own.
func (s Hosts) ProgramEnvironment(h *topology.Host, p *topology.Program) []string {
	env := WithoutKeeperMark(os.Environ())
	for name, value := range p.Env {
		env = append(env, name+"="+value)
	}
	path := os.Getenv("PATH")
	if own, ok := p.Env["PATH"]; ok {
		path = own
	}
	if s.Weft != "" {
		path = s.ProgramsDir() + ":" + path
	}
	return s.Environment(append(env, "PATH="+path), h)
}

func WithoutKeeperMark(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, machine.KeeperEnv+"=") })
}

// ProgramsDir is where the name weft stands for the program that brought the lab up.
func (s Hosts) ProgramsDir() string { return filepath.Join(s.Dir(), "bin") }
