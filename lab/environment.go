package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// environment returns an environment with what a process in a host is told of
// it, and with the mark of the lab.
func (s hosts) environment(env []string, h *topology.Host) []string {
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

// environmentAt is environment for a host or a switch.
func (s hosts) environmentAt(env []string, node string) []string {
	h, ok := s.Topology.HostByName(node)
	if !ok {
		h = &topology.Host{Name: node}
	}
	return append(s.environment(env, h), s.switchEnvironment(node)...)
}

// switchEnvironment is what a process at a switch is told of it: with it the tools of
// Open vSwitch reach the lab's own, and vtysh the node's routing.
func (s hosts) switchEnvironment(name string) (env []string) {
	if bridge, ok := s.Bridges[name]; ok {
		o := switchesOf(s.Lab).ovsOf(name)
		env = append(env, "WEFT_LAB_BRIDGE="+bridge, "OVS_RUNDIR="+o.dir, "OVS_DBDIR="+o.dir)
	}
	if n := s.Node(name); n != nil {
		env = append(env, "WEFT_LAB_ROUTING="+routingOf(s.Lab).routingDir(n))
	}
	return env
}

// programEnvironment is the environment of a program: that of who brought the
// lab up, in which weft is the program that did so, and its own.
func (s hosts) programEnvironment(h *topology.Host, p *topology.Program) []string {
	env := withoutKeeperMark(os.Environ())
	for name, value := range p.Env {
		env = append(env, name+"="+value)
	}
	path := os.Getenv("PATH")
	if own, ok := p.Env["PATH"]; ok {
		path = own
	}
	if s.Weft != "" {
		path = s.programsDir() + ":" + path
	}
	return s.environment(append(env, "PATH="+path), h)
}

func withoutKeeperMark(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, machine.KeeperEnv+"=") })
}

// programsDir is where the name weft stands for the program that brought the lab up.
func (s hosts) programsDir() string { return filepath.Join(s.Dir(), "bin") }
