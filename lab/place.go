package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Place is where a node of a lab runs.
type Place struct {
	Namespace string // its network namespace, for ip-netns(8)
	Own       bool   // no other node is in it; Open vSwitch switches share one
}

// PlaceOf returns where a host or switch runs.
func (l *Lab) PlaceOf(node string) (Place, error) { return l.state.placeOf(node) }

func (s *state) placeOf(node string) (Place, error) {
	if _, ok := s.Topology.HostByName(node); ok {
		return Place{hostNetns(s.Name, node), true}, nil
	}
	sw, ok := s.Topology.SwitchByName(node)
	switch {
	case !ok:
		return Place{}, fmt.Errorf("lab %s has no host or switch %q; `weft lab graph` shows those there are", s.Name, node)
	case sw.routes():
		return Place{hostNetns(s.Name, node), true}, nil
	}
	return Place{switchNetns(s.Name), false}, nil
}

// StartAt is StartCmd for a host or a switch.
func (l *Lab) StartAt(node string, cmd *exec.Cmd) error {
	place, err := l.PlaceOf(node)
	if err != nil {
		return err
	}
	return l.StartIn(place.Namespace, node, cmd)
}

// StartIn is StartAt in another namespace of the lab.
func (l *Lab) StartIn(namespace, node string, cmd *exec.Cmd) error {
	h, ok := l.state.Topology.HostByName(node)
	if !ok {
		h = &Host{Name: node}
	}
	cmd.Env = l.state.environment(cmd.Environ(), h)
	if err := l.state.inSpace(namespace, node, cmd.Start); err != nil {
		return fmt.Errorf("%s: start %s: %w", node, cmd.Args[0], err)
	}
	return nil
}

// InterfaceOf returns the network namespace and the name of the interface that is
// a port of a switch, or of a host, whose port is 0: its eth0.
func (l *Lab) InterfaceOf(node string, port uint16) (namespace, iface string, err error) {
	place, err := l.PlaceOf(node)
	if err != nil {
		return "", "", err
	}
	s, err := loadState(l.state.Name) // cables replace interfaces, and nodes come and go
	if err != nil {
		return "", "", err
	}
	var ports []string
	for i := range s.Wires {
		for _, e := range s.Wires[i].ends() {
			switch {
			case e.Node != node:
			case e.Host && port == 0 && e.Iface == hostIface, !e.Host && e.Port == port:
				return e.Netns, e.Iface, nil
			case !e.Host:
				ports = append(ports, fmt.Sprint(e.Port))
			}
		}
	}
	if port == 0 {
		return place.Namespace, "any", nil
	}
	if _, ok := s.Topology.HostByName(node); ok {
		return "", "", fmt.Errorf("host %s has no port %d: leave the port out", node, port)
	}
	slices.Sort(ports)
	return "", "", fmt.Errorf("switch %s has no port %d; allowed: %s", node, port, strings.Join(ports, ", "))
}

// Revision changes with every change of what the lab is made of, not with the
// state of its links.
func (l *Lab) Revision() (string, error) {
	s, err := loadState(l.state.Name)
	if err != nil {
		return "", err
	}
	return s.revision()
}

func (s *state) revision() (string, error) {
	b, err := json.Marshal(struct {
		Created int64
		*Topology
	}{s.Created.UnixNano(), s.Topology})
	if err != nil {
		return "", fmt.Errorf("sum up lab %s: %w", s.Name, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// textFile is where the text is kept that a lab was made from: a lab that has been
// changed otherwise has none.
func (s *state) textFile() (string, error) {
	r, err := s.revision()
	return fmt.Sprintf("%s/file-%s.yaml", s.dir(), r), err
}

// KeepText keeps the text of the file that the lab is made from, for Text.
func (l *Lab) KeepText(text []byte) error {
	s, err := loadState(l.state.Name)
	if err != nil {
		return err
	}
	return s.keepText(text)
}

// keepText is KeepText; nil: the lab is made from none.
func (s *state) keepText(text []byte) error {
	path, err := s.textFile()
	if err != nil || text == nil {
		return err
	}
	before, err := filepath.Glob(filepath.Join(s.dir(), "file-*.yaml"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("keep the file of lab %s: %w", s.Name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("keep the file of lab %s: %w", s.Name, err)
	}
	for _, old := range before {
		if old != path {
			os.Remove(old)
		}
	}
	return nil
}

// Text returns the text of the file that the lab is made from; if that is not
// kept, of one that makes the same.
func (l *Lab) Text() ([]byte, error) {
	s, err := loadState(l.state.Name)
	if err != nil {
		return nil, err
	}
	path, err := s.textFile()
	if err != nil {
		return nil, err
	}
	if text, err := os.ReadFile(path); err == nil {
		return text, nil
	}
	return s.Topology.YAML()
}
