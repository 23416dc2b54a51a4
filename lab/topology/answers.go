package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// Answers say what stands in for nodes of a file that a lab cannot run: by the node's
// name, or else by its kind in the file.
type Answers map[string]StandIn

// StandIn is what a node becomes: a Kind of switch, StandHost or StandNone.
type StandIn string

const (
	StandHost StandIn = "host"
	StandNone StandIn = "none" // left out, with its links
)

// standIns are the values of StandIn, for messages.
const standIns = kindRule + ", host, none"

// ParseAnswers reads answers such as "nokia_srlinux=router".
func ParseAnswers(list []string) (Answers, error) {
	a := Answers{}
	for _, s := range list {
		what, in, ok := strings.Cut(s, "=")
		if !ok || what == "" || !slices.Contains(strings.Split(standIns, ", "), in) {
			return nil, fmt.Errorf("%q: want NODE=KIND or KIND-IN-THE-FILE=KIND, such as nokia_srlinux=router; allowed: %s", s, standIns)
		}
		a[what] = StandIn(in)
	}
	return a, nil
}

// checkUsed says which answer nothing asked for.
func (a Answers) checkUsed(file string, used map[string]bool) error {
	for _, what := range slices.Sorted(maps.Keys(a)) {
		if !used[what] {
			return Problem{File: file, What: document.Wording("%s=%s: the file has no node %q and no node of that kind to ask about", what, a[what], what)}
		}
	}
	return nil
}

// Question asks what stands in for nodes of a file: nothing in the file says so, and a
// lab cannot run what they are.
type Question struct {
	Line  int      `json:"line"`
	Kind  string   `json:"kind"`  // in the file
	Nodes []string `json:"nodes"` // in the file
	Why   string   `json:"why"`
}

// Questions are those of a file.
type Questions struct {
	File string
	List []Question
}

func (q *Questions) Error() string {
	lines := make([]string, len(q.List))
	for i, one := range q.List {
		nodes := "node " + one.Nodes[0]
		if n := len(one.Nodes); n > 1 {
			nodes = fmt.Sprintf("%d nodes (%s)", n, some(one.Nodes))
		}
		lines[i] = fmt.Sprintf("%s:%d: %s of kind %s: %s. Say what stands in: --as %s=KIND, where KIND is one of %s",
			q.File, one.Line, nodes, one.Kind, one.Why, one.Key(), standIns)
	}
	return strings.Join(lines, "\n")
}

// Key is what an answer to the question is of: nodes that a lab can run are asked
// about one by one.
func (q *Question) Key() string {
	if q.Kind == clabLinux || q.Kind == clabOVSBridge {
		return q.Nodes[0]
	}
	return q.Kind
}
