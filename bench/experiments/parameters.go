package experiments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/internal/asowner"
)

// The transports between processes that experiments compare.
var transports = []string{"grpc", "ws", "rest", "shm", "nats"}

// Transports returns the transports between processes, in the order of tables.
func Transports() []string { return slices.Clone(transports) }

// Parameters say how an experiment is run. Samples of different parameters are
// never mixed.
type Parameters struct {
	Experiment string   `json:"experiment"`
	Transports []string `json:"transports"`
	Quick      bool     `json:"quick"`
	Runs       int      `json:"runs"` // of each case
	Seed       uint64   `json:"seed"`
	Build      string   `json:"build"`          // of Weft
	Core       string   `json:"core,omitempty"` // of real functions; empty: simulated
}

// CheckTransports says which transport there is not.
func CheckTransports(list []string) error {
	for _, t := range list {
		if !slices.Contains(transports, t) {
			return fmt.Errorf("transport %q: want some of %s", t, strings.Join(transports, ", "))
		}
	}
	return nil
}

// differences tells which parameters differ from those of earlier samples.
func (p Parameters) differences(earlier Parameters) []string {
	var list []string
	differ := func(name string, was, is any) {
		if a, b := fmt.Sprint(was), fmt.Sprint(is); a != b {
			list = append(list, fmt.Sprintf("%s was %s, is %s", name, a, b))
		}
	}
	differ("experiment", earlier.Experiment, p.Experiment)
	differ("transports", strings.Join(earlier.Transports, ","), strings.Join(p.Transports, ","))
	differ("quick", earlier.Quick, p.Quick)
	differ("runs", earlier.Runs, p.Runs)
	differ("seed", earlier.Seed, p.Seed)
	differ("core", earlier.Core, p.Core)
	differ("build", earlier.Build, p.Build)
	return list
}

// claim makes a directory that of these parameters: it writes them into it, or
// refuses if it holds samples of others.
func (p Parameters) claim(dir string) error {
	file := filepath.Join(dir, "parameters.json")
	b, err := asowner.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if b, err = json.MarshalIndent(p, "", "  "); err != nil {
			return err
		}
		return asowner.WriteWhole(file, append(b, '\n'), 0o644)
	case err != nil:
		return err
	}
	var earlier Parameters
	if err := json.Unmarshal(b, &earlier); err != nil {
		return fmt.Errorf("%s: %w; remove the directory to start anew", file, err)
	}
	if list := p.differences(earlier); len(list) > 0 {
		return fmt.Errorf("%s holds samples taken otherwise: %s; run with the same parameters to go on, with --fresh to discard them, or with another --dir",
			dir, strings.Join(list, "; "))
	}
	return nil
}
