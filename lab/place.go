package lab

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/lab/layout"
)

// PlaceOf returns where a host or switch runs.
func (l *Lab) PlaceOf(node string) (layout.Place, error) { return l.state.PlaceOf(node) }

// NodeNames returns the names of the nodes: switches first, each in the order of the lab file.
func (l *Lab) NodeNames() []string {
	var names []string
	for _, s := range l.state.Topology.Switches {
		names = append(names, s.Name)
	}
	for _, h := range l.state.Topology.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// CheckNode returns an error unless the lab has a host or switch of that name.
func (l *Lab) CheckNode(node string) error {
	_, err := l.PlaceOf(node)
	return err
}

// Where is empty: nodes are on this machine.
func (l *Lab) Where(string) string { return "" }

// mostInterfaces is how many interfaces are followed at once.
const mostInterfaces = 64

// InterfacesOf returns the network namespace and the names of the interfaces that
// are a port of a switch, or all of its ports if port is 0, or of a host, whose
// port is 0: its eth0. Of what routes, 0 is all of its namespace: any.
func (l *Lab) InterfacesOf(node string, port uint16) (namespace string, ifaces []string, err error) {
	place, err := l.PlaceOf(node)
	if err != nil {
		return "", nil, err
	}
	s, err := layout.Load(l.state.Name) // cables replace interfaces, and nodes come and go
	if err != nil {
		return "", nil, err
	}
	var ports, all []string
	for i := range s.Wires {
		for _, e := range s.Wires[i].Ends() {
			switch {
			case e.Node != node:
			case e.Host && port == 0 && e.Iface == layout.HostIface, !e.Host && port != 0 && e.Port == port:
				return e.Netns, []string{e.Iface}, nil
			case !e.Host:
				ports, all, namespace = append(ports, fmt.Sprint(e.Port)), append(all, e.Iface), e.Netns
			}
		}
	}
	switch _, host := s.Topology.HostByName(node); {
	case port != 0 && host:
		return "", nil, fmt.Errorf("host %s has no port %d: leave the port out", node, port)
	case port != 0:
		slices.Sort(ports)
		return "", nil, fmt.Errorf("switch %s has no port %d; allowed: %s", node, port, strings.Join(ports, ", "))
	case host || s.Node(node) != nil:
		return place.Namespace, []string{"any"}, nil
	case len(all) == 0:
		return "", nil, fmt.Errorf("switch %s has no ports", node)
	case len(all) > mostInterfaces:
		return "", nil, fmt.Errorf("switch %s has %d ports, and at most %d can be followed at once: say which port", node, len(all), mostInterfaces)
	}
	return namespace, all, nil
}

// Revision changes with every change of what the lab is made of, not with the
// state of its links.
func (l *Lab) Revision() (string, error) {
	s, err := layout.Load(l.state.Name)
	if err != nil {
		return "", err
	}
	return s.Revision()
}

// CheckRevision is what Apply does about ApplyOptions.MadeFrom.
func (l *Lab) CheckRevision(madeFrom string) error {
	s, err := layout.Load(l.state.Name)
	if err != nil {
		return err
	}
	return s.CheckRevision(madeFrom)
}

// KeepText keeps the text of the file that the lab is made from, for Text.
func (l *Lab) KeepText(text []byte) error {
	s, err := layout.Load(l.state.Name)
	if err != nil {
		return err
	}
	return s.KeepText(text)
}

// Text returns the text of the file that the lab is made from; if that is not
// kept, of one that makes the same.
func (l *Lab) Text() ([]byte, error) {
	s, err := layout.Load(l.state.Name)
	if err != nil {
		return nil, err
	}
	path, err := s.TextFile()
	if err != nil {
		return nil, err
	}
	if text, err := os.ReadFile(path); err == nil {
		return text, nil
	}
	return s.Topology.YAML()
}
