package nodes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/lab/topology"
)

// ProgramFile returns the path of the file that a program of the lab is in, and its words.
func (s Hosts) ProgramFile(p *topology.Program) (string, []string, error) {
	argv, err := topology.SplitWords(p.Command)
	if err != nil {
		return "", nil, err
	}
	name := argv[0]
	if name == "weft" && s.Weft != "" {
		return s.Weft, argv, nil
	}
	paths := []string{name}
	if !strings.Contains(name, "/") {
		search, ok := p.Env["PATH"]
		if !ok {
			search = os.Getenv("PATH")
		}
		paths = filepath.SplitList(search)
		for i := range paths {
			paths[i] = filepath.Join(paths[i], name)
		}
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Directory, path)
		}
		if about, err := os.Stat(path); err == nil && about.Mode().IsRegular() && about.Mode()&0o111 != 0 {
			return path, argv, nil
		}
	}
	return "", nil, &absentError{name, s.Directory}
}

// absentError is about a program that this machine does not have.
type absentError struct {
	name      string
	directory string // of the lab file
}

// inPath reports whether the program was looked for in PATH.
func (e *absentError) inPath() bool { return !strings.Contains(e.name, "/") }

func (e *absentError) Error() string {
	if e.inPath() {
		return fmt.Sprintf("there is no program %s in PATH", e.name)
	}
	return fmt.Sprintf("there is no program %s in %s", e.name, e.directory)
}

// Bounds of what absentPrograms says.
const (
	maxAbsentNames = 10
	maxAbsentHosts = 4
)

// absentPrograms are those that this machine does not have.
type absentPrograms struct {
	first  topology.Problem
	name   string              // of the first
	inPath bool                // some were looked for in PATH
	others []string            // names of further ones
	hosts  map[string][]string // by name, but for the first's first
}

// add adds a program that a host lacks.
func (a *absentPrograms) add(missing *absentError, host string) {
	a.inPath = a.inPath || missing.inPath()
	if missing.name != a.name && a.hosts[missing.name] == nil {
		a.others = append(a.others, missing.name)
	}
	if !slices.Contains(a.hosts[missing.name], host) {
		a.hosts[missing.name] = append(a.hosts[missing.name], host)
	}
}

// Error says which programs are missing and where, in one line, and what to do.
func (a *absentPrograms) Error() string {
	text := a.first.Error()
	if also := a.hosts[a.name]; also != nil {
		text += " (also " + listed(also, maxAbsentHosts) + ")"
	}
	var others []string
	for _, name := range a.others {
		others = append(others, name+" ("+listed(a.hosts[name], maxAbsentHosts)+")")
	}
	if others != nil {
		text += "; nor " + listed(others, maxAbsentNames)
	}
	if a.inPath {
		return text + ": install what is missing, or set the PATH of weft lab up to where it is"
	}
	return text + ": install what is missing, or change its path"
}

// listed returns the first of some words, and how many there are besides.
func listed(words []string, most int) string {
	if more := len(words) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), more)
	}
	return strings.Join(words, ", ")
}

// CheckPrograms reports the programs of the lab that this machine does not have.
func (s Hosts) CheckPrograms() error {
	var problems topology.Problems
	var absent *absentPrograms
	for i := range s.Topology.Hosts {
		h := &s.Topology.Hosts[i]
		for j := range h.Run {
			_, _, err := s.ProgramFile(&h.Run[j])
			missing, ok := errors.AsType[*absentError](err)
			switch {
			case err == nil:
			case !ok:
				problems = append(problems, s.Topology.ProblemOfProgram(h, &h.Run[j], err))
			case absent == nil:
				absent = &absentPrograms{first: s.Topology.ProblemOfProgram(h, &h.Run[j], err), name: missing.name, inPath: missing.inPath(), hosts: map[string][]string{}}
			default:
				absent.add(missing, h.Name)
			}
		}
	}
	if absent != nil {
		return errors.Join(problems.Short(), absent)
	}
	return problems.Short()
}
