package testbed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/wholefile"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// runDir is where this machine keeps what it knows of labs on several machines.
const runDir = "/run/weft/testbed"

// Lab is a lab on several machines. Its methods may be called from several goroutines.
type Lab struct {
	Name     string             `json:"name"`
	Created  time.Time          `json:"created"`
	Ready    bool               `json:"ready"` // Up has finished
	Topology *topology.Topology `json:"topology"`
	Mapping  *Mapping           `json:"mapping"`
	Machines *Machines          `json:"machines"`       // those that have a part
	Programs map[string]string  `json:"programs"`       // path of weft, by machine
	File     string             `json:"file,omitempty"` // text of the lab file, if known

	Changed time.Time          `json:"changed,omitzero"` // when Apply changed it last
	Was     *topology.Topology `json:"was,omitempty"`    // of an apply that is not finished: the topology before it
	Given   bool               `json:"given,omitempty"`  // the controllers are not those of the file

	// Died says which programs of hosts ended within their first second, after Up.
	Died []error `json:"-"`
}

func dirOf(name string) string { return filepath.Join(runDir, name) }

// Names lists the labs on several machines that this machine knows.
func Names() ([]string, error) {
	entries, err := os.ReadDir(runDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the labs on several machines: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Exists reports whether this machine knows a lab on several machines of that name.
func Exists(name string) bool {
	names, err := Names()
	return err == nil && slices.Contains(names, name)
}

// Open returns a lab on several machines.
func Open(name string) (*Lab, error) {
	if !Exists(name) {
		return nil, fmt.Errorf("lab %s: no such lab on several machines is up; see `weft lab list`", name)
	}
	b, err := os.ReadFile(filepath.Join(dirOf(name), "lab.json"))
	if err != nil {
		return nil, fmt.Errorf("read the state of lab %s: %w", name, err)
	}
	l := &Lab{}
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("read the state of lab %s: %w", name, err)
	}
	return l, nil
}

// claim takes the lab's name by making its directory.
func (l *Lab) claim() error {
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", runDir, err)
	}
	err := os.Mkdir(dirOf(l.Name), 0o755)
	switch {
	case errors.Is(err, fs.ErrExist), err == nil && lab.Exists(l.Name):
		if err == nil {
			os.Remove(dirOf(l.Name))
		}
		return fmt.Errorf("lab %s is up already: take it down with `weft lab down %s`, or give this one another name", l.Name, l.Name)
	case err != nil:
		return fmt.Errorf("make the directory of lab %s: %w", l.Name, err)
	}
	return l.save()
}

func (l *Lab) save() error {
	b, err := json.MarshalIndent(l, "", " ")
	if err != nil {
		return fmt.Errorf("encode the state of lab %s: %w", l.Name, err)
	}
	path := filepath.Join(dirOf(l.Name), "lab.json")
	if err := wholefile.Write(path, b, 0o600); err != nil {
		return fmt.Errorf("write the state of lab %s: %w", l.Name, err)
	}
	return nil
}

// forget removes what this machine knows of the lab.
func (l *Lab) forget() error {
	if err := os.RemoveAll(dirOf(l.Name)); err != nil {
		return fmt.Errorf("remove the state of lab %s: %w", l.Name, err)
	}
	if os.Remove(runDir) == nil {
		os.Remove(filepath.Dir(runDir))
	}
	return nil
}

// machine returns the machine that has a node; the error lists nodes.
func (l *Lab) machine(node string) (*Machine, error) {
	name := l.Mapping.MachineOf(node)
	for i := range l.Machines.List {
		if l.Machines.List[i].Name == name {
			return &l.Machines.List[i], nil
		}
	}
	var names []string
	for _, p := range l.Mapping.Nodes[:min(10, len(l.Mapping.Nodes))] {
		names = append(names, p.Node)
	}
	return nil, fmt.Errorf("lab %s has no node %q; allowed: %s …", l.Name, node, strings.Join(names, ", "))
}

// used are the network identifiers of the tunnels of the labs that this machine knows.
func used() map[uint32]bool {
	all := map[uint32]bool{}
	names, _ := Names() // what cannot be read is found in use on the machines
	for _, name := range names {
		if l, err := Open(name); err == nil {
			for _, k := range l.Mapping.Tunnels {
				all[k.VNI] = true
			}
		}
	}
	return all
}
