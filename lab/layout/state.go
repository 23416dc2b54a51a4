package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// Lab is what a lab's directory says of it: written before anything of the
// lab exists, and again whenever a link changes.
type Lab struct {
	Name      string                `json:"name"`
	Created   time.Time             `json:"created"`
	Ready     bool                  `json:"ready"` // Up has finished
	Maker     machine.ProcessID     `json:"maker"`
	Temporary bool                  `json:"temporary,omitempty"` // it is to last as long as its maker
	Topology  *topology.Topology    `json:"topology"`
	Bridges   map[string]string     `json:"bridges"` // switch name -> bridge name
	TLS       *TLS                  `json:"tls,omitempty"`
	Weft      string                `json:"weft,omitempty"`   // what weft is in the hosts' programs
	Directory string                `json:"directory"`        // that the hosts' programs run in
	Manage    map[string]Management `json:"manage,omitempty"` // of managed hosts, by their names
	Wires     []Wire                `json:"wires"`            // those of hosts first, in the order of the topology; of eth1 last
	Nodes     []Node                `json:"nodes,omitempty"`  // hybrid nodes and routers
	Given     bool                  `json:"given,omitempty"`  // who brought it up gave the controllers, not its file
	Todo      []Task                `json:"todo,omitempty"`   // what an apply has still to do, in that order

	Notify func(node, did string) `json:"-"` // Options.Node; may be nil
}

// NotifyNode calls Notify, if it is set, with what was done to a node.
func (s *Lab) NotifyNode(node, what string) {
	if s.Notify != nil {
		s.Notify(node, what)
	}
}

func (s *Lab) Dir() string { return machine.Dir(s.Name) }

func (s *Lab) encode() ([]byte, error) {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the state of lab %s: %w", s.Name, err)
	}
	return b, nil
}

// Save stores the state, which has secrets of programs in it: for its user alone.
func (s *Lab) Save() error { return s.SaveIn(s.Dir()) }

func (s *Lab) SaveIn(dir string) error {
	b, err := s.encode()
	if err != nil {
		return err
	}
	if err := machine.ReplaceFile(filepath.Join(dir, "lab.json"), b, 0o600); err != nil {
		return fmt.Errorf("write the state of lab %s: %w", s.Name, err)
	}
	return nil
}

// CheckRoom returns an error if there is no room to save the state, changed a little,
// and so many bytes more. It is asked before something is done that has to be remembered.
func (s *Lab) CheckRoom(more int) error {
	b, err := s.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(s.Dir(), "room")
	defer os.Remove(path)
	if err := machine.WriteSynced(path, make([]byte, 2*len(b)+more+4096), 0o600); err != nil {
		return fmt.Errorf("the state of lab %s could not be written, so nothing was done: %w", s.Name, err)
	}
	return nil
}

func Load(name string) (*Lab, error) {
	if err := topology.CheckName(name); err != nil { // it becomes part of a path
		return nil, fmt.Errorf("%w: %w", machine.ErrNoLab, err)
	}
	b, err := os.ReadFile(filepath.Join(machine.Dir(name), "lab.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lab %s: %w", name, machine.ErrNoLab)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of lab %s: %w", name, err)
	}
	s := &Lab{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("read the state of lab %s: %w", name, err)
	}
	return s, nil
}

// TLS is what the switches of a lab show a controller, and know it by: files in
// PEM. They are one Open vSwitch, which has one certificate for all bridges.
type TLS struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	Authority   string `json:"authority"`
}

// Management is the second interface of a managed host.
type Management struct {
	Address    netip.Addr `json:"address"`    // of the host
	Controller netip.Addr `json:"controller"` // of the outside, at the other end
	Interface  string     `json:"interface"`  // of the machine
}
