package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
)

// applied is what a file changes, by the names of objects.
type applied struct {
	Added     []string `json:"added"`
	Changed   []string `json:"changed"`
	Deleted   []string `json:"deleted"`
	Unchanged []string `json:"unchanged"`

	lines []string // for people
}

// applyObjects makes the command that has a controller have the objects that a
// file says, and no others.
func applyObjects(r *cli.Remote, words, what string, kinds []*kind) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Have exactly the " + what + " of a file",
		Long: `Have exactly the ` + what + ` of a file: those that it names are added, or changed to
what it says, and all others are deleted. The file is YAML or JSON, as ` + words + `
list -o yaml prints it; - is standard input.`,
		Example: "  " + words + " apply FILE.yaml --dry-run\n  " + words + " apply FILE.yaml",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would change")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		list, err := readObjects(args[0], cmd, kinds)
		if err != nil {
			return cli.View{}, err
		}
		to := &applied{[]string{}, []string{}, []string{}, []string{}, nil}
		err = to.apply(c, list, dry)
		return cli.View{Value: to, Text: func(t *cli.Table) {
			for _, line := range to.lines {
				fmt.Fprintln(t, cli.Plain(line))
			}
			fmt.Fprintf(t, "%d added, %d changed, %d deleted, %d unchanged\n", len(to.Added), len(to.Changed), len(to.Deleted), len(to.Unchanged))
		}, Failed: err}, nil
	})
}

// apply deletes what is no more wanted, the last kind first, and then makes what
// is.
func (a *applied) apply(c *cli.Controller, kinds []*desired, dry bool) error {
	for _, k := range kinds {
		if err := k.look(c); err != nil {
			return err
		}
	}
	for _, k := range slices.Backward(kinds) {
		if err := k.remove(c, a, dry); err != nil {
			return err
		}
	}
	for _, k := range kinds {
		if err := k.putAll(c, a, dry); err != nil {
			return err
		}
	}
	return nil
}

// readObjects reads a file: lists under the keys of kinds, or, if there is one
// kind, its list alone.
func readObjects(path string, cmd *cobra.Command, kinds []*kind) (list []*desired, err error) {
	name, docs, errs, err := readDocuments(path, cmd.InOrStdin(), "file of objects")
	if err != nil {
		return nil, err
	}
	r := &fileReader{path: name, errs: errs}
	var keys []string
	for _, k := range kinds {
		list = append(list, &desired{kind: k})
		keys = append(keys, string(k.objects.Name()))
	}
	some := false
	for _, v := range docs {
		switch {
		case v.Kind == document.List && len(kinds) == 1:
			list[0].take(r, v)
			some = true
		case v.Kind == document.Mapping:
			for _, e := range v.Entries {
				i := slices.Index(keys, e.Key)
				if e.Key == "total" || e.Key == "incomplete" { // of a list
					continue
				}
				if i < 0 {
					r.wrong(e.Line, "unknown key %q; allowed: %s", e.Key, strings.Join(keys, ", "))
					continue
				}
				list[i].take(r, e.Value)
				some = true
			}
		case v.Kind != document.Null && v.Kind != document.Broken:
			r.wrong(v.Line, "want %s: with a list", keys[0])
		}
	}
	if len(r.errs) == 0 && !some {
		return nil, fmt.Errorf("%s: nothing in it; want %s: with a list, which may be empty", name, strings.Join(keys, ": and "))
	}
	return list, joined(r.errs)
}

// desired is what a file says of a kind, beside what the controller has.
type desired struct {
	*kind
	want []proto.Message
	have map[string]proto.Message
}

// take reads a list of objects.
func (d *desired) take(r *fileReader, v document.Value) {
	if v.Kind != document.List {
		if v.Kind != document.Broken && v.Kind != document.Null {
			r.wrong(v.Line, "%s: want a list", d.objects.Name())
		}
		return
	}
	lines := map[string]int{}
	for _, item := range v.Items {
		m := newMessage(d.objects.Message()).Interface()
		if d.fresh != nil {
			d.fresh(m)
		}
		if !r.message(m, "a "+d.One, item) {
			continue
		}
		d.tidyUp(m)
		name := d.nameOf(m)
		if _, full := (scope{Message: m.ProtoReflect()}).write(d.Name); !full {
			r.wrong(item.Line, "%s: want each with a name, by which it is known", d.objects.Name())
			continue
		}
		if d.foreign != nil && d.foreign(m) {
			continue
		}
		if first := lines[name]; first != 0 {
			r.wrong(item.Line, "%s %s is in line %d, too", d.One, name, first)
			continue
		}
		lines[name] = item.Line
		d.want = append(d.want, m)
	}
}

// tidyUp brings an object into the form in which objects are compared: without what the
// service finds.
func (d *desired) tidyUp(m proto.Message) {
	clearFound(m.ProtoReflect())
	if d.tidy != nil {
		d.tidy(m)
	}
}

// clearFound clears the fields that the service finds, and writes DPIDs in one way.
func clearFound(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case flagOf(f).GetFound():
			m.Clear(f)
		case f.Name() == "dpid" && f.Kind() == protoreflect.StringKind && !f.IsList():
			if sw, err := flow.ParseDPID(v.String()); err == nil {
				m.Set(f, protoreflect.ValueOfString(sw.String()))
			}
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for _, below := range messagesOf(v.List()) {
				clearFound(below)
			}
		default:
			clearFound(v.Message())
		}
		return true
	})
}

// look asks which objects the controller has.
func (d *desired) look(c *cli.Controller) error {
	answer, err := d.listAll(c)
	if err != nil {
		return err
	}
	d.have = map[string]proto.Message{}
	for _, m := range d.of(answer) {
		if d.foreign == nil || !d.foreign(m) {
			d.tidyUp(m)
			d.have[d.nameOf(m)] = m
		}
	}
	return nil
}

// remove deletes the objects that the file does not name, or says so if it is a dry run.
func (d *desired) remove(c *cli.Controller, to *applied, dry bool) error {
	left := maps.Clone(d.have)
	for _, m := range d.want {
		delete(left, d.nameOf(m))
	}
	var list []proto.Message
	for _, name := range slices.Sorted(maps.Keys(left)) {
		list = append(list, left[name])
	}
	if !dry && d.removeAll != nil && len(list) > 0 {
		if err := d.removeAll(c, list); err != nil {
			return err
		}
	}
	for _, m := range list {
		if !dry && d.removeAll == nil {
			if err := d.delete(c, m); err != nil {
				return err
			}
		}
		to.Deleted = append(to.Deleted, d.nameOf(m))
		to.lines = append(to.lines, fmt.Sprintf("- %s %s", d.One, d.nameOf(m)))
	}
	return nil
}

// putAll makes the objects as the file says, or says so if it is a dry run.
func (d *desired) putAll(c *cli.Controller, to *applied, dry bool) error {
	var due []proto.Message
	for _, m := range d.want {
		if old, there := d.have[d.nameOf(m)]; there && proto.Equal(old, completed(m, old)) {
			to.Unchanged = append(to.Unchanged, d.nameOf(m))
		} else {
			due = append(due, m)
		}
	}
	if !dry && d.setAll != nil && len(due) > 0 {
		if err := d.setAll(c, due); err != nil {
			return err
		}
	}
	for _, m := range due {
		name := d.nameOf(m)
		old, there := d.have[name]
		if !dry && d.setAll == nil {
			now, err := d.put(c, m)
			if err != nil {
				return err
			}
			d.tidyUp(now)
			m = now
		} else if there {
			m = completed(m, old)
		}
		switch {
		case !there:
			to.Added = append(to.Added, name)
			to.lines = append(to.lines, fmt.Sprintf("+ %s %s", d.One, name))
		case proto.Equal(old, m): // it says the same in other words
			to.Unchanged = append(to.Unchanged, name)
		default:
			to.Changed = append(to.Changed, name)
			to.lines = append(to.lines, fmt.Sprintf("~ %s %s: %s", d.One, name, difference(old, m)))
		}
	}
	return nil
}

// completed returns an object with what the controller has given it before where
// nothing is said.
func completed(m, old proto.Message) proto.Message {
	full, before := proto.Clone(m).ProtoReflect(), old.ProtoReflect()
	for i := range full.Descriptor().Fields().Len() {
		switch f := full.Descriptor().Fields().Get(i); {
		case !flagOf(f).GetGiven():
		case f.Message() != nil && before.Has(f):
			both := proto.Clone(before.Get(f).Message().Interface())
			proto.Merge(both, full.Get(f).Message().Interface())
			full.Set(f, protoreflect.ValueOfMessage(both.ProtoReflect()))
		case !full.Has(f):
			full.Set(f, before.Get(f))
		}
	}
	return full.Interface()
}

// difference says which fields of two messages differ.
func difference(old, now proto.Message) string {
	var parts []string
	fields := old.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if a, b := only(old, f), only(now, f); a != b {
			parts = append(parts, fmt.Sprintf("%s %s → %s", f.Name(), a, b))
		}
	}
	return strings.Join(parts, ", ")
}

// only returns one field of a message as JSON.
func only(m proto.Message, f protoreflect.FieldDescriptor) string {
	if !m.ProtoReflect().Has(f) {
		return "none"
	}
	one := m.ProtoReflect().New()
	one.Set(f, m.ProtoReflect().Get(f))
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(one.Interface())
	var b bytes.Buffer
	if err := errors.Join(err, json.Compact(&b, text)); err != nil {
		return "?"
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), fmt.Sprintf("{%q:", f.Name())), "}")
}
