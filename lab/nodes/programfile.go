package nodes

import (
	"fmt"
	"os"
	"path/filepath"
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
	if strings.Contains(name, "/") {
		return "", nil, fmt.Errorf("there is no program %s in %s", name, s.Directory)
	}
	return "", nil, fmt.Errorf("there is no program %s in PATH", name)
}

// CheckPrograms reports the programs of the lab that this machine does not have.
func (s Hosts) CheckPrograms() error {
	var problems topology.Problems
	for i := range s.Topology.Hosts {
		h := &s.Topology.Hosts[i]
		for j := range h.Run {
			if _, _, err := s.ProgramFile(&h.Run[j]); err != nil {
				problems = append(problems, s.Topology.ProblemOfProgram(h, &h.Run[j], err))
			}
		}
	}
	return problems.Short()
}
