package topology

import (
	"cmp"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// draft is a lab file in the making: what a file of another tool says, in the keys of
// lab files. Its values have the lines of the other file.
type draft struct {
	file     string
	top      []document.Entry // but the lists
	switches []document.Value
	hosts    []document.Value
	links    []document.Value
	names    names

	remarks   []string
	selfLoops []string // nodes with a link to themselves, which was left out
}

func newDraft(file, name string) *draft {
	base := filepath.Base(file)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	d := &draft{file: file, names: names{}}
	d.top = []document.Entry{entry(1, "name", LabName(plainLetters(cmp.Or(name, strings.TrimSuffix(base, ".clab")))))}
	return d
}

func (d *draft) fail(line int, format string, args ...any) error {
	return Problem{File: d.file, Line: line, What: document.Wording(format, args...)}
}

func (d *draft) remark(format string, args ...any) {
	d.remarks = append(d.remarks, document.Wording(format, args...))
}

// entry is a key with a text.
func entry(line int, key, text string) document.Entry {
	return document.Entry{Key: key, Line: line, Value: document.Value{Kind: document.Word, Line: line, Text: text}}
}

// number is a key with a number or a truth value.
func number(line int, key, text string) document.Entry {
	return document.Entry{Key: key, Line: line, Value: document.Value{Kind: document.Plain, Line: line, Text: text}}
}

// place is where a node stands on a drawing, as Loom reads it.
func place(line int, x, y float64) document.Entry {
	at := func(v float64) document.Value {
		return document.Value{Kind: document.Plain, Line: line, Text: strconv.FormatFloat(v+0, 'f', -1, 64)} // +0: not -0
	}
	return document.Entry{Key: forOthers + "position", Line: line, Value: document.Value{
		Kind: document.List, Line: line, Items: []document.Value{at(x), at(y)},
	}}
}

// mapping is an element of a list of the lab file. Entries with an empty text are left
// out.
func mapping(line int, entries ...document.Entry) document.Value {
	v := document.Value{Kind: document.Mapping, Line: line}
	for _, e := range entries {
		if e.Key != "" && (!e.Value.Scalar() || e.Value.Text != "") {
			v.Entries = append(v.Entries, e)
		}
	}
	return v
}

// lists are the lists of the lab file by their keys.
func (d *draft) lists() []document.Entry {
	var all []document.Entry
	for _, l := range []struct {
		key   string
		items []document.Value
	}{{"switches", d.switches}, {"hosts", d.hosts}, {"links", d.links}} {
		if len(l.items) > 0 {
			all = append(all, document.Entry{Key: l.key, Line: l.items[0].Line, Value: document.Value{
				Kind: document.List, Line: l.items[0].Line, Items: l.items,
			}})
		}
	}
	return all
}

// topology completes and checks what the draft says.
func (d *draft) topology(b Bounds) (*Topology, error) {
	v := document.Value{Kind: document.Mapping, Line: 1, Entries: append(d.top[:len(d.top):len(d.top)], d.lists()...)}
	t := &Topology{file: d.file, line: 1, remarks: d.remarks, selfLoops: d.selfLoops}
	if err := (&reader{file: d.file}).read(v, t, b, Running{}); err != nil {
		return nil, err
	}
	return t, nil
}

// text returns the draft as a lab file.
func (d *draft) text() (string, error) {
	var b strings.Builder
	for _, e := range d.top {
		line, err := document.Value{Kind: document.Mapping, Entries: []document.Entry{e}}.Readable()
		if err != nil {
			return "", err
		}
		b.Write(line)
	}
	for _, l := range d.lists() {
		b.WriteString(l.Key + ":\n")
		for _, item := range l.Value.Items {
			line, err := item.OneLine()
			if err != nil {
				return "", err
			}
			b.WriteString("  - " + line + "\n")
		}
	}
	return b.String(), nil
}
