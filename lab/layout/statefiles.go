package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// ControllerSockets is, for each controller of the lab, the socket in its
// directory the switches connect to.
func (s *Lab) ControllerSockets() []string {
	if slices.Contains(s.Topology.Controllers, topology.ControllerNone) {
		return nil
	}
	socks := make([]string, len(s.Topology.Controllers))
	for i := range socks {
		name := "ctl.sock"
		if i > 0 {
			name = fmt.Sprintf("ctl-%d.sock", i+1)
		}
		socks[i] = filepath.Join(s.Dir(), name)
	}
	return socks
}

// LogFile returns the path of the log of a program.
func (s *Lab) LogFile(host, program string) string {
	return filepath.Join(s.Dir(), "logs", host, program+".log")
}

func (s *Lab) NamesFile() string { return filepath.Join(s.Dir(), "hosts") }

// WriteNames writes the file that is /etc/hosts in the lab's hosts: in place, because
// it lies there already in the hosts whose programs run.
func (s *Lab) WriteNames() error {
	if err := os.WriteFile(s.NamesFile(), s.Topology.HostsFile(), 0o644); err != nil {
		return fmt.Errorf("write the names of the lab's hosts: %w", machine.ExplainNoRoom(s.NamesFile(), err))
	}
	return nil
}

// ControlNetns is the namespace of the controllers' machine. No node has that name.
func ControlNetns(lab string) string { return machine.HostNetns(lab, "_control") }

// EndingFile is there while a lab is taken down: an apply that is under way stops.
func EndingFile(name string) string { return filepath.Join(machine.Dir(name), "ending") }

// CheckEnding returns an error if the lab is being taken down.
func (s *Lab) CheckEnding() error {
	if _, err := os.Stat(EndingFile(s.Name)); err != nil {
		return nil
	}
	return fmt.Errorf("lab %s is being taken down; if nobody does that any more, finish it by `weft lab down %s`", s.Name, s.Name)
}

// Claim takes the lab's name by making its directory.
func (s *Lab) Claim() error {
	err := fs.ErrNotExist
	for try := 0; try < 10 && errors.Is(err, fs.ErrNotExist); try++ { // the last lab to go removes runDir
		if err := os.MkdirAll(machine.RunDir, 0o755); err != nil {
			return fmt.Errorf("make %s: %w", machine.RunDir, err)
		}
		err = os.Mkdir(s.Dir(), 0o755)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("lab %s is up already: take it down with `weft lab down %s`, or give this one another name", s.Name, s.Name)
	case err != nil:
		return fmt.Errorf("make the directory of lab %s: %w", s.Name, err)
	}
	if left := machine.LabNetns(s.Name); len(left) > 0 { // of a lab whose directory was removed by hand
		os.Remove(s.Dir())
		return fmt.Errorf("network namespace %s of an earlier lab %s is still there: remove it with `weft lab down %s`", left[0], s.Name, s.Name)
	}
	if err := s.Save(); err != nil {
		os.RemoveAll(s.Dir())
		return err
	}
	return nil
}
