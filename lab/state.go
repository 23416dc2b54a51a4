package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/wholefile"
	"github.com/weft-sdn/weft/lab/topology"
)

// runDir is where every lab that is up, or half up, has its directory.
const runDir = "/run/weft/lab"

func dirOf(name string) string { return filepath.Join(runDir, name) }

// state is what a lab's directory says of it: written before anything of the
// lab exists, and again whenever a link changes.
type state struct {
	Name      string                `json:"name"`
	Created   time.Time             `json:"created"`
	Ready     bool                  `json:"ready"` // Up has finished
	Maker     processID             `json:"maker"`
	Temporary bool                  `json:"temporary,omitempty"` // it is to last as long as its maker
	Topology  *topology.Topology    `json:"topology"`
	Bridges   map[string]string     `json:"bridges"` // switch name -> bridge name
	TLS       *TLS                  `json:"tls,omitempty"`
	Weft      string                `json:"weft,omitempty"`   // what weft is in the hosts' programs
	Directory string                `json:"directory"`        // that the hosts' programs run in
	Manage    map[string]Management `json:"manage,omitempty"` // of managed hosts, by their names
	Wires     []wire                `json:"wires"`            // those of hosts first, in the order of the topology; of eth1 last
	Nodes     []labNode             `json:"nodes,omitempty"`  // hybrid nodes and routers
	Given     bool                  `json:"given,omitempty"`  // who brought it up gave the controllers, not its file
	Todo      []task                `json:"todo,omitempty"`   // what an apply has still to do, in that order

	tell func(node, did string) // Options.Node; may be nil
}

// did tells whoever follows what has been done to a node.
func (s *state) did(node, what string) {
	if s.tell != nil {
		s.tell(node, what)
	}
}

func (s *state) dir() string { return dirOf(s.Name) }

func (s *state) encode() ([]byte, error) {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the state of lab %s: %w", s.Name, err)
	}
	return b, nil
}

// save stores the state, which has secrets of programs in it: for its user alone.
func (s *state) save() error { return s.saveIn(s.dir()) }

func (s *state) saveIn(dir string) error {
	b, err := s.encode()
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, "lab.json"), b, 0o600); err != nil {
		return fmt.Errorf("write the state of lab %s: %w", s.Name, err)
	}
	return nil
}

// room returns an error if there is no room to save the state, changed a little,
// and so many bytes more. It is asked before something is done that has to be remembered.
func (s *state) room(more int) error {
	b, err := s.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir(), "room")
	defer os.Remove(path)
	if err := writeSynced(path, make([]byte, 2*len(b)+more+4096), 0o600); err != nil {
		return fmt.Errorf("the state of lab %s could not be written, so nothing was done: %w", s.Name, err)
	}
	return nil
}

// replaceFile writes a file that others read: they see the one that was, or the
// whole new one. The one that was stays if it fails.
func replaceFile(path string, b []byte, mode os.FileMode) error {
	return noRoom(path, wholefile.Write(path, b, mode))
}

// writeSynced writes a file, and returns once it is stored.
func writeSynced(path string, b []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return noRoom(path, err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return noRoom(path, errors.Join(err, f.Close()))
}

// noRoom says of an error that a file was not written by whether there is no room.
func noRoom(path string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: make room where %s is", err, filepath.Dir(path))
	}
	return err
}

// errNoLab is wrapped by errors about a lab that is not up.
var errNoLab = errors.New("no such lab is up; see `weft lab list`")

func loadState(name string) (*state, error) {
	if err := topology.CheckName(name); err != nil { // it becomes part of a path
		return nil, fmt.Errorf("%w: %w", errNoLab, err)
	}
	b, err := os.ReadFile(filepath.Join(dirOf(name), "lab.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lab %s: %w", name, errNoLab)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of lab %s: %w", name, err)
	}
	s := &state{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("read the state of lab %s: %w", name, err)
	}
	return s, nil
}

// lockState takes the lock under which a lab's links are changed; closing the
// file releases it.
func lockState(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dirOf(name), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lab %s: %w", name, errNoLab)
	}
	if err != nil {
		return nil, fmt.Errorf("lock lab %s: %w", name, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock lab %s: %w", name, err)
	}
	return f, nil
}

// switchNetns is the namespace in which a lab's Open vSwitch runs. A lab's
// name has no dot, so no two labs share a namespace's name.
func switchNetns(lab string) string { return "weft-" + lab }

func hostNetns(lab, host string) string { return "weft-" + lab + "." + host }
