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

// typedApplied is what a file changes, by the names of objects.
type typedApplied struct {
	Added     []string `json:"added"`
	Changed   []string `json:"changed"`
	Deleted   []string `json:"deleted"`
	Unchanged []string `json:"unchanged"`

	lines []string // for people
}

// declared is what a file says of one kind of objects.
type declared interface {
	named() string // the key of their list in the file
	// take reads a list of them.
	take(r *fileReader, v document.Value)
	// look compares them with those of the controller.
	look(c *cli.Controller) error
	// remove deletes those that the file does not name, and put makes the others
	// as the file says; both only say so if it is a dry run.
	remove(c *cli.Controller, to *typedApplied, dry bool) error
	put(c *cli.Controller, to *typedApplied, dry bool) error
}

// applyObjects makes the command that has a controller have the objects that a
// file says, and no others.
func applyTyped(r *cli.Remote, words, what string, kinds func() []declared) *cobra.Command {
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
		list := kinds()
		if err := readTyped(args[0], cmd, list); err != nil {
			return cli.View{}, err
		}
		to := &typedApplied{[]string{}, []string{}, []string{}, []string{}, nil}
		err := to.apply(c, list, dry)
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
func (a *typedApplied) apply(c *cli.Controller, kinds []declared, dry bool) error {
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
		if err := k.put(c, a, dry); err != nil {
			return err
		}
	}
	return nil
}

// readTyped reads a file: lists under the keys of kinds, or, if there is one
// kind, its list alone.
func readTyped(path string, cmd *cobra.Command, kinds []declared) error {
	name, docs, errs, err := readDocuments(path, cmd.InOrStdin(), "file of objects")
	if err != nil {
		return err
	}
	r := &fileReader{path: name, errs: errs}
	var keys []string
	for _, k := range kinds {
		keys = append(keys, k.named())
	}
	some := false
	for _, v := range docs {
		switch {
		case v.Kind == document.List && len(kinds) == 1:
			kinds[0].take(r, v)
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
				kinds[i].take(r, e.Value)
				some = true
			}
		case v.Kind != document.Null && v.Kind != document.Broken:
			r.wrong(v.Line, "want %s: with a list", keys[0])
		}
	}
	if len(r.errs) == 0 && !some {
		return fmt.Errorf("%s: nothing in it; want %s: with a list, which may be empty", name, strings.Join(keys, ": and "))
	}
	return joined(r.errs)
}

// desired is what a file says of a kind, beside what the controller has.
type typedDesired[M proto.Message] struct {
	*typedKind[M]
	want []M
	have map[string]M
}

func (d *typedDesired[M]) named() string { return d.key }

func (d *typedDesired[M]) take(r *fileReader, v document.Value) {
	if v.Kind != document.List {
		if v.Kind != document.Broken && v.Kind != document.Null {
			r.wrong(v.Line, "%s: want a list", d.key)
		}
		return
	}
	lines := map[string]int{}
	for _, item := range v.Items {
		m := (*new(M)).ProtoReflect().New().Interface().(M)
		if d.fresh != nil {
			m = d.fresh()
		}
		if !r.message(m, "a "+d.one, item) {
			continue
		}
		if d.name(d.tidied(m)) == "" {
			r.wrong(item.Line, "%s: want each with a name, by which it is known", d.key)
			continue
		}
		if d.foreign != nil && d.foreign(m) {
			continue
		}
		if first := lines[d.name(m)]; first != 0 {
			r.wrong(item.Line, "%s %s is in line %d, too", d.one, d.name(m), first)
			continue
		}
		lines[d.name(m)] = item.Line
		d.want = append(d.want, m)
	}
}

// tidied brings an object into the form in which objects are compared.
func (d *typedDesired[M]) tidied(m M) M {
	if f := m.ProtoReflect().Descriptor().Fields().ByName("dpid"); f != nil {
		if sw, err := flow.ParseDPID(m.ProtoReflect().Get(f).String()); err == nil {
			m.ProtoReflect().Set(f, protoreflect.ValueOfString(sw.String()))
		}
	}
	d.tidy(m)
	return m
}

func (d *typedDesired[M]) look(c *cli.Controller) error {
	m, err := d.list(c)
	if err != nil {
		return err
	}
	d.have = map[string]M{}
	for _, o := range d.of(m) {
		if d.foreign != nil && d.foreign(o) {
			continue
		}
		d.have[d.name(o)] = d.tidied(o)
	}
	return nil
}

func (d *typedDesired[M]) remove(c *cli.Controller, to *typedApplied, dry bool) error {
	left := maps.Clone(d.have)
	for _, m := range d.want {
		delete(left, d.name(m))
	}
	var list []M
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
			if _, err := d.typedKind.remove(c, m); err != nil {
				return err
			}
		}
		to.Deleted = append(to.Deleted, d.name(m))
		to.lines = append(to.lines, fmt.Sprintf("- %s %s", d.one, d.name(m)))
	}
	return nil
}

func (d *typedDesired[M]) put(c *cli.Controller, to *typedApplied, dry bool) error {
	var due []M
	for _, m := range d.want {
		if old, there := d.have[d.name(m)]; there && proto.Equal(old, d.completed(m, old)) {
			to.Unchanged = append(to.Unchanged, d.name(m))
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
		name := d.name(m)
		old, there := d.have[name]
		if !dry && d.setAll == nil {
			now, err := d.set(c, m)
			if err != nil {
				return err
			}
			m = d.tidied(now)
		} else if there {
			m = d.completed(m, old)
		}
		switch {
		case !there:
			to.Added = append(to.Added, name)
			to.lines = append(to.lines, fmt.Sprintf("+ %s %s", d.one, name))
		case proto.Equal(old, m): // it says the same in other words
			to.Unchanged = append(to.Unchanged, name)
		default:
			to.Changed = append(to.Changed, name)
			to.lines = append(to.lines, fmt.Sprintf("~ %s %s: %s", d.one, name, typedDifference(old, m)))
		}
	}
	return nil
}

// completed returns an object with what the controller has given it before where
// nothing is said.
func (d *typedDesired[M]) completed(m, old M) M {
	full := proto.CloneOf(m).ProtoReflect()
	for _, name := range d.given {
		f := full.Descriptor().Fields().ByName(protoreflect.Name(name))
		switch before := old.ProtoReflect(); {
		case f.Message() != nil && before.Has(f):
			both := proto.Clone(before.Get(f).Message().Interface())
			proto.Merge(both, full.Get(f).Message().Interface())
			full.Set(f, protoreflect.ValueOfMessage(both.ProtoReflect()))
		case !full.Has(f):
			full.Set(f, before.Get(f))
		}
	}
	return full.Interface().(M)
}

// difference says which fields of two messages differ.
func typedDifference(old, now proto.Message) string {
	var parts []string
	fields := old.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if a, b := typedOnly(old, f), typedOnly(now, f); a != b {
			parts = append(parts, fmt.Sprintf("%s %s → %s", f.Name(), a, b))
		}
	}
	return strings.Join(parts, ", ")
}

// only returns one field of a message as JSON.
func typedOnly(m proto.Message, f protoreflect.FieldDescriptor) string {
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
