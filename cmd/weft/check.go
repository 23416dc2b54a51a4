package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weft"
	"weft/deploy"
	"weft/internal/document"
	"weft/lab"
	"weft/plan"
	"weft/services"
	"weft/services/gateway"
)

// checkResult is what is said of one file.
type checkResult struct {
	File     string    `json:"file"`
	Kind     string    `json:"kind"` // configuration, plan or topology
	OK       bool      `json:"ok"`
	Problems []problem `json:"problems"`
}

// problem is one mistake in a file.
type problem struct {
	Line    int    `json:"line"` // 0 if it is of no line
	Message string `json:"message"`
}

func checkCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check a configuration, a plan or a topology, without starting anything",
		Long: `Check files without starting anything: configurations of the controller, as for
weft up --config, plans (those with workers), and topologies, as for weft lab
up. Which of them a file is, its keys say. Every mistake is reported as
FILE:LINE: what is wrong, and what is allowed.`,
		Example: `  weft check weft.yaml
  weft check plan.yaml
  weft check triangle.yaml topology.graphml -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			results := []checkResult{}
			wrong := 0
			for _, path := range args {
				r, err := checkFile(path)
				if err != nil {
					return err
				}
				wrong += len(r.Problems)
				results = append(results, r)
			}
			err := out.print(cmd, results, func(t *table) {
				for _, r := range results {
					if r.OK {
						fmt.Fprintf(t, "%s: a %s without mistakes\n", r.File, r.Kind)
					}
					for _, p := range r.Problems {
						fmt.Fprintln(t, p.in(r.File))
					}
				}
			})
			switch {
			case err != nil:
				return err
			case wrong == 1:
				return fmt.Errorf("1 mistake")
			case wrong > 1:
				return fmt.Errorf("%d mistakes", wrong)
			}
			return nil
		},
	}
	out.flag(cmd)
	return cmd
}

func (p problem) in(file string) string {
	if p.Line == 0 {
		return file + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", file, p.Line, p.Message)
}

// checkFile checks one file; the error is of reading it.
func checkFile(path string) (checkResult, error) {
	text, err := document.ReadFile(path)
	if err != nil {
		return checkResult{}, fmt.Errorf("check: %w", err)
	}
	r := checkResult{File: path, Kind: "configuration", Problems: []problem{}}
	switch {
	case strings.EqualFold(filepath.Ext(path), ".graphml"):
		r.Kind = "topology"
		_, err = lab.LoadGraphML(path)
	case isPlan(text):
		r.Kind = "plan"
		err = checkPlan(path, text)
	case isTopology(text):
		r.Kind = "topology"
		_, err = lab.Parse(path, text)
	default:
		err = deploy.Check(path, allSpecs())
	}
	r.OK = err == nil
	if err != nil {
		r.Problems = problemsOf(path, err)
		slices.SortStableFunc(r.Problems, func(a, b problem) int { return a.Line - b.Line })
	}
	return r, nil
}

// allSpecs returns the declarations of all services, to look at, not to run.
func allSpecs() []weft.Spec { return services.All(gateway.Process{}) }

// checkPlan reports everything that is wrong with a plan, the settings of its
// services included.
func checkPlan(path string, text []byte) error {
	p, err := plan.Parse(path, text)
	if err != nil {
		return err
	}
	return fits(p)
}

// fits reports what is wrong with a plan for the services of this build.
func fits(p *plan.Plan) error { return deploy.CheckPlan(p, allSpecs()) }

// problemsOf splits an error of several lines, each with the place.
func problemsOf(path string, err error) (list []problem) {
	for line := range strings.Lines(err.Error()) {
		p := problem{Message: strings.TrimSuffix(strings.TrimRight(line, "\n"), ";")}
		p.Message = strings.TrimPrefix(p.Message, path+": ")
		if rest, ok := strings.CutPrefix(p.Message, path+":"); ok {
			if number, text, ok := strings.Cut(rest, ": "); ok {
				if n, err := strconv.Atoi(number); err == nil {
					p = problem{n, text}
				}
			}
		}
		list = append(list, p)
	}
	return list
}

// workersKey is the beginning of a line that only a plan has.
var workersKey = regexp.MustCompile(`(?m)^["']?(workers|partitions)["']?\s*:`)

// isPlan reports whether a file is a plan: it has workers or partitions.
func isPlan(text []byte) bool {
	v, ok := looked(text)
	if !ok {
		return workersKey.Match(text)
	}
	_, workers := v.Get("workers")
	_, partitions := v.Get("partitions")
	return workers || partitions
}

// looked reads a file to see what it is, whatever is wrong in it; false if it is
// not well-formed or has nothing in it.
func looked(text []byte) (document.Value, bool) {
	limits := fileLimits("file")
	limits.Aliases = 1000 // as in topologies
	docs, _, ok := document.ReadAll(text, limits)
	if !ok || len(docs) == 0 || docs[0].Kind == document.Null {
		return document.Value{}, false
	}
	return docs[0], true
}

// topologyKey are the beginnings of lines that only a topology has, for files
// that are not well-formed.
var topologyKey = regexp.MustCompile(`(?m)^["']?(switches|links|name|controller)["']?\s*:`)

// isTopology reports whether a file is a topology: it has switches, links, a
// name or a controller, or its hosts are a list; in a configuration they are
// the section of a service.
func isTopology(text []byte) bool {
	v, ok := looked(text)
	if !ok {
		return topologyKey.Match(text)
	}
	for _, e := range v.Entries {
		switch e.Key {
		case "switches", "links", "name", "controller":
			return true
		case "hosts":
			if e.Value.Kind == document.List {
				return true
			}
		}
	}
	return false
}
