package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// Orphan is the remains of a lab that nobody owns any more.
type Orphan struct {
	Lab        string   `json:"lab"`
	Why        string   `json:"why"`
	Processes  []int    `json:"processes"`
	Namespaces []string `json:"namespaces"`
}

// claimTime is how long a lab that is being made may take to say who makes it.
const claimTime = time.Minute

// Orphans lists the labs that nobody owns: those half made whose maker has
// ended, temporary ones whose maker has ended, and processes and namespaces of
// labs that have no directory any more.
func Orphans() ([]Orphan, error) {
	if err := machine.NeedRoot(); err != nil {
		return nil, err
	}
	spaces := machine.AllNetns()
	processes, err := markedProcesses()
	if err != nil {
		return nil, err
	}
	names, err := machine.Names()
	if err != nil {
		return nil, err
	}
	for name := range spaces {
		names = append(names, name)
	}
	for name := range processes {
		names = append(names, name)
	}
	slices.Sort(names)
	orphans := []Orphan{}
	for _, name := range slices.Compact(names) {
		if why := orphaned(name, processes[name]); why != "" && topology.CheckName(name) == nil {
			all, err := machine.MembersOf(name).Processes()
			if err != nil {
				return nil, err
			}
			orphans = append(orphans, Orphan{Lab: name, Why: why, Processes: all, Namespaces: spaces[name]})
		}
	}
	return orphans, nil
}

// HasRemains reports whether there are processes or namespaces of a lab.
func HasRemains(name string) (bool, error) {
	processes, err := machine.MembersOf(name).Processes()
	return len(processes) > 0 || len(machine.AllNetns()[name]) > 0, err
}

// orphaned returns why nobody owns a lab; empty if somebody does.
func orphaned(name string, marked []int) string {
	s, err := layout.Load(name)
	switch {
	case err == nil && s.Maker.PID == 0, err == nil && s.Maker.Runs():
		return ""
	case err == nil && !s.Ready:
		return fmt.Sprintf("it is half made, and its maker, process %d, has ended", s.Maker.PID)
	case err == nil && s.Temporary:
		return fmt.Sprintf("it was to last as long as process %d, which has ended", s.Maker.PID)
	case err == nil:
		return ""
	case errors.Is(err, machine.ErrNoLab):
		if about, err := os.Stat(machine.Dir(name)); err == nil {
			if time.Since(about.ModTime()) < claimTime {
				return ""
			}
			return "its directory says nothing of it"
		}
		// A process that has another root directory may have its lab there.
		for _, pid := range marked {
			if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "root", machine.Dir(name))); err == nil {
				return ""
			}
		}
		return "its directory is gone"
	}
	return "" // its state cannot be read: Down says so, and takes it down
}

// markedProcesses lists the processes that bear the mark of a lab, by its name.
func markedProcesses() (map[string][]int, error) {
	pids, err := machine.AllProcesses()
	if err != nil {
		return nil, err
	}
	of := map[string][]int{}
	for _, pid := range pids {
		started, kept := machine.MarksOf(pid)
		for _, dir := range []string{started, kept} {
			if name := filepath.Base(dir); dir == machine.Dir(name) {
				of[name] = append(of[name], pid)
			}
		}
	}
	return of, nil
}

// Prune takes down what Orphans lists, and returns it.
func Prune(ctx context.Context) ([]Orphan, error) {
	orphans, err := Orphans()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, o := range orphans {
		errs = append(errs, Down(ctx, o.Lab))
	}
	return orphans, errors.Join(errs...)
}
