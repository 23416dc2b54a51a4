package topology

import (
	"bytes"
	"cmp"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// FileForms says which files are read, for help texts.
const FileForms = "lab files, containerlab's YAML, GraphML (yEd, NetworkX, Topology Zoo), GML, Topology3D"

// ReadOptions say how a file is read.
type ReadOptions struct {
	Bounds  Bounds
	Answers Answers // to Questions
}

// Read reads a network from a file of any of FileForms, completes and checks it; what
// the text is says which. file names it in messages, and gives the lab its name if the
// text does not. The error is Problems, a Problem, or Questions.
func Read(file string, text []byte, o ReadOptions) (*Topology, error) {
	d, text, err := draftOf(file, text, o)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return parse(file, text, o.Bounds, Running{})
	}
	return d.topology(o.Bounds)
}

// Import returns the lab file that says what a file of any of FileForms says, to be
// edited: with the places of its nodes on a drawing, as x-position, and not completed.
// A lab file comes back as it is. The remarks say what was left out.
func Import(file string, text []byte, o ReadOptions) (lab string, remarks []string, err error) {
	d, text, err := draftOf(file, text, o)
	if err != nil {
		return "", nil, err
	}
	if d == nil {
		return string(text), nil, nil
	}
	t := &Topology{selfLoops: d.selfLoops, remarks: d.remarks}
	lab, err = d.text()
	return lab, append(selfLoops(t), Shorten(t.remarks)...), err
}

// graphOfGML is how the graph of a GML file begins.
var graphOfGML = regexp.MustCompile(`(?m)^[ \t]*graph\s*\[`)

// draftOf returns the draft of a file of another tool; nil for a lab file or one of
// Topology3D. The text comes back in UTF-8.
func draftOf(file string, text []byte, o ReadOptions) (*draft, []byte, error) {
	limits := limits()
	limits.Items = cmp.Or(o.Bounds.Items, limits.Items)
	text, err := decode(text)
	if err != nil {
		return nil, nil, Problem{File: file, Line: 1, What: document.Wording("%v", err)}
	}
	begin := bytes.TrimSpace(text[:min(len(text), 4<<10)])
	extension := strings.ToLower(filepath.Ext(file))
	var d *draft
	var used map[string]bool // answers
	switch {
	case bytes.HasPrefix(begin, []byte("<")):
		d, err = draftGraphML(file, text, limits.Items)
	case extension == ".gml" || !bytes.HasPrefix(begin, []byte("{")) && graphOfGML.Match(text):
		d, err = draftGML(file, string(text), limits.Items)
	case extension == ".py":
		err = Problem{File: file, What: "a Python script; if it is Mininet's, run it, with Weft as its controller: docs/networks.md"}
	case extension == ".graphml":
		err = Problem{File: file, Line: 1, What: "not GraphML, which begins with <"}
	case bytes.Contains(text, []byte("topology")), bytes.Contains(text, []byte("nodes")):
		d, used, err = draftClab(file, text, limits, o.Answers)
	}
	if err == nil {
		err = o.Answers.checkUsed(file, used)
	}
	if err == nil && d != nil {
		err = o.Bounds.checkDraft(d)
	}
	return d, text, err
}

// checkDraft says which bound a draft exceeds.
func (b Bounds) checkDraft(d *draft) error {
	return b.check(&Topology{
		file: d.file, line: 1,
		Switches: make([]Switch, len(d.switches)), Hosts: make([]Host, len(d.hosts)), Links: make([]Link, len(d.links)),
	})
}
