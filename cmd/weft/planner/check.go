package planner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
)

// CheckResult is the result of checking one file.
type CheckResult struct {
	File     string             `json:"file"`
	Kind     string             `json:"kind"` // configuration, plan or topology
	OK       bool               `json:"ok"`
	Problems []planning.Problem `json:"problems"`
	Remarks  []string           `json:"remarks,omitempty"` // what is odd about a topology

	size string // of a topology, in words
}

func CheckCommand() *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "check FILE|PLAN|TOPOLOGY...",
		Short: "Check a configuration, a plan or a topology, without starting anything",
		Long: `Check files without starting anything: configurations of the controller, as for
weft up --config, plans (those with workers), and topologies, as for weft lab
up. Plans that are built in, and topologies, may also be given by their names:
split, ring:10, graphml:FILE. Which of them a file is, its keys say. All mistakes are reported as FILE:LINE: what is wrong,
what is allowed, and what may have been meant. Of a topology it is said what is
odd: parts that no link joins, parallel links, links from a node to itself.`,
		Example: `  weft check weft.yaml
  weft check plan.yaml split
  weft check fattree:4 triangle.yaml topology.graphml zoo.gml -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			results := []CheckResult{}
			wrong := 0
			var unread []error
			for _, path := range args {
				r, err := CheckFile(path)
				if err != nil {
					unread = append(unread, err)
					continue
				}
				wrong += len(r.Problems)
				results = append(results, r)
			}
			err := out.Print(cmd, results, func(t *cli.Table) {
				for _, r := range results {
					if r.OK {
						fmt.Fprintf(t, "%s: a %s without mistakes%s\n", r.File, r.Kind, r.size)
					}
					for _, remark := range r.Remarks {
						fmt.Fprintf(t, "%s: odd: %s\n", r.File, remark)
					}
					for _, p := range r.Problems {
						fmt.Fprintln(t, p.In(r.File))
					}
				}
			})
			return errors.Join(append(unread, err, cli.Mistakes(wrong))...)
		},
	}
	out.Flag(cmd)
	return cmd
}

// CheckFile checks one file, or a topology that needs none; the error is of
// reading it.
func CheckFile(path string) (CheckResult, error) {
	r := CheckResult{File: path, Kind: "configuration", Problems: []planning.Problem{}}
	var topo *topology.Topology
	text, err := document.ReadFile(path)
	if slices.Contains(plans.Names(), path) { // as weft up takes it
		text, err = plans.Read(path)
	}
	switch {
	case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR)) && topology.IsForm(path):
		r.Kind = "topology"
		topo, err = topology.Resolve(path)
		if wrong := (*topology.SpecError)(nil); errors.As(err, &wrong) {
			err = errors.New(wrong.Why) // the spec stands before it
		}
	case errors.Is(err, fs.ErrNotExist):
		return CheckResult{}, &UnknownFile{path}
	case err != nil:
		return CheckResult{}, fmt.Errorf("check: %w", err)
	case isEmpty(text):
		r.Kind = "file"
		what := "the file is empty"
		if len(bytes.TrimSpace(text)) > 0 {
			what = "the file has comments only"
		}
		err = errors.New(what + ": a configuration has sections of services, a plan has workers, a topology has switches")
	case slices.Contains(drawings, strings.ToLower(filepath.Ext(path))):
		r.Kind = "topology"
		topo, err = topology.Read(path, text, topology.ReadOptions{})
	case isPlan(text):
		r.Kind = "plan"
		_, err = planning.Read(path, text, AllSpecs())
	case isNamed(text):
		r.Kind = "file"
		err = errors.New("the file has a name only: a plan has workers, a topology has switches")
	case isTopology(text):
		r.Kind = "topology"
		topo, err = topology.Read(path, text, topology.ReadOptions{})
	default:
		err = config.Check(path, AllSpecs())
	}
	if err == nil && topo != nil {
		r.Remarks = topology.Remarks(topo)
		r.size = fmt.Sprintf(": %d switches, %d links, %d hosts", len(topo.Switches), len(topo.Links), len(topo.Hosts))
	}
	r.OK = err == nil
	if err != nil {
		r.Problems = planning.Problems(path, err)
	}
	return r, nil
}

// drawings are the extensions of files of networks that are not YAML.
var drawings = []string{".graphml", ".gml", ".py", ".gns3"}

// AllSpecs returns the declarations of all services, to look at, not to run.
func AllSpecs() []weft.Spec { return services.All(gateway.Process{}) }

// Fits reports what is wrong with a plan for the services of this build.
func Fits(p *plan.Plan) error { return config.CheckPlan(p, AllSpecs()) }

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

// isEmpty reports whether a file says nothing: it has white space and comments
// at most.
func isEmpty(text []byte) bool {
	docs, _, ok := document.ReadAll(text, cli.FileLimits("file"))
	return ok && !slices.ContainsFunc(docs, func(v document.Value) bool { return v.Kind != document.Null })
}

// looked reads a file to see what it is, whatever is wrong in it; false if it is
// not well-formed or has nothing in it.
func looked(text []byte) (document.Value, bool) {
	limits := cli.FileLimits("file")
	limits.Aliases = 1000 // as in topologies
	docs, _, ok := document.ReadAll(text, limits)
	if !ok || len(docs) == 0 || docs[0].Kind == document.Null {
		return document.Value{}, false
	}
	return docs[0], true
}

// isNamed reports whether a file has a name and nothing else, as plans and topologies
// begin.
func isNamed(text []byte) bool {
	v, ok := looked(text)
	return ok && len(v.Entries) == 1 && v.Entries[0].Key == "name"
}

// topologyKey are the beginnings of lines that only a topology has, for files
// that are not well-formed.
var topologyKey = regexp.MustCompile(`(?m)^["']?(switches|links|name|controller|topology)["']?\s*:`)

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
		case "topology": // containerlab's
			return e.Value.Kind == document.Mapping
		case "hosts":
			if e.Value.Kind == document.List {
				return true
			}
		}
	}
	return false
}
