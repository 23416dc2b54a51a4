package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// form is the flags and arguments of a command, which set the fields of a request.
type form struct {
	cmd    *cobra.Command
	inputs []input
	args   [][]protoreflect.FieldDescriptor // the way to the field of each argument; nil: none
}

// input is a flag or argument: put sets what it says in the message that has its field.
type input struct {
	path     []protoreflect.FieldDescriptor // of messages from the request to that message
	flag     string
	optional bool // it is set only if it is given, whatever its default
	put      func(to protoreflect.Message) error
	zero     func() bool // whether it says what an empty field says
}

// flagOf returns how the command sets a field.
func flagOf(f protoreflect.FieldDescriptor) *api.Flag {
	return proto.GetExtension(f.Options(), api.E_Flag).(*api.Flag)
}

// newForm adds to a command the flags of a request, and reads its arguments by their usage.
func newForm(cmd *cobra.Command, request protoreflect.MessageDescriptor, usage string) *form {
	f := &form{cmd: cmd}
	f.add(request, nil)
	least, most, optional := 0, 0, false
	for _, word := range strings.Fields(usage) {
		word, name, named := strings.Cut(word, "=")
		if !named {
			name, _, _ = strings.Cut(strings.Trim(word, "[]."), "[")
			name, _, _ = strings.Cut(strings.ToLower(name), "/")
		}
		cmd.Use += " " + word
		path := findField(request, protoreflect.Name(name))
		f.args = append(f.args, path)
		optional = optional || strings.HasPrefix(word, "[")
		if most++; !optional && path != nil {
			least++
		}
	}
	switch {
	case most == 0:
		cmd.Args = cobra.NoArgs
	case strings.Contains(usage, "..."):
		cmd.Args = cobra.MinimumNArgs(least)
	case least == most:
		cmd.Args = cobra.ExactArgs(most)
	default:
		cmd.Args = cobra.RangeArgs(least, most)
	}
	return f
}

// findField returns the way to a field of a message, or of a message in it.
func findField(d protoreflect.MessageDescriptor, name protoreflect.Name) []protoreflect.FieldDescriptor {
	if f := d.Fields().ByName(name); f != nil {
		return []protoreflect.FieldDescriptor{f}
	}
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); f.Message() != nil && !f.IsList() && !f.IsMap() {
			if below := findField(f.Message(), name); below != nil {
				return append([]protoreflect.FieldDescriptor{f}, below...)
			}
		}
	}
	return nil
}

// add adds the flags of a message, and of those in it.
func (f *form) add(d protoreflect.MessageDescriptor, path []protoreflect.FieldDescriptor) {
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		switch flag := flagOf(field); {
		case flag.GetHelp() != "":
			in := newInput(f.cmd, field, flag)
			in.path = path
			f.inputs = append(f.inputs, in)
		case field.Message() != nil && !field.IsList() && !field.IsMap() && !flag.GetFound():
			f.add(field.Message(), append(path[:len(path):len(path)], field))
		}
	}
}

// newInput adds the flag of a field to a command.
func newInput(cmd *cobra.Command, field protoreflect.FieldDescriptor, flag *api.Flag) input {
	name, letter, _ := strings.Cut(flag.GetName(), ",")
	if name == "" {
		name = strings.ReplaceAll(string(field.Name()), "_", "-")
	}
	in := input{flag: name, optional: field.HasPresence()}
	set := func(v any) func(protoreflect.Message) error {
		return func(to protoreflect.Message) error {
			to.Set(field, protoreflect.ValueOf(v))
			return nil
		}
	}
	number, _ := strconv.ParseInt(flag.GetDefault(), 10, 64)
	flags, help := cmd.Flags(), flag.GetHelp()
	form, separated := strings.CutPrefix(flag.GetForm(), "list")
	form = strings.TrimSpace(form)
	read := func(texts *[]string) {
		in.zero = func() bool { return len(*texts) == 0 }
		in.put = func(to protoreflect.Message) error {
			to.Clear(field)
			return readForm(form, name, to, field, *texts)
		}
	}
	switch kind := field.Kind(); {
	case form == "dpid" && !field.IsList():
		v := &cli.DPIDFlag{}
		flags.VarP(v, name, letter, help)
		in.zero = func() bool { return v.Text == "" }
		in.put = func(to protoreflect.Message) error { return set(v.Text)(to) }
	case form == "rate":
		var v cli.Bandwidth
		flags.Var(&v, name, help)
		in.zero = func() bool { return v == 0 }
		in.put = func(to protoreflect.Message) error {
			if kind == protoreflect.Uint64Kind {
				return set(uint64(v))(to)
			}
			if v > math.MaxUint32 {
				return fmt.Errorf("--%s: %s is more than 4T", name, &v)
			}
			return set(uint32(v))(to)
		}
	case form == "us":
		v := flags.Duration(name, 0, help)
		in.zero = func() bool { return *v == 0 }
		in.put = func(to protoreflect.Message) error {
			if kind == protoreflect.Uint64Kind {
				return set(uint64(v.Microseconds()))(to)
			}
			return set(uint32(min(uint64(v.Microseconds()), math.MaxUint32)))(to) // too much if it is less than 0
		}
	case form == "uint16":
		v := flags.Uint16(name, uint16(number), help)
		in.zero = func() bool { return *v == 0 }
		in.put = func(to protoreflect.Message) error { return set(uint32(*v))(to) }
	case kind == protoreflect.BoolKind:
		v := flags.BoolP(name, letter, false, help)
		in.zero = func() bool { return !*v }
		in.put = func(to protoreflect.Message) error { return set(*v)(to) }
	case kind == protoreflect.Uint32Kind && form == "":
		v := flags.Uint32P(name, letter, uint32(number), help)
		in.zero = func() bool { return *v == 0 }
		in.put = func(to protoreflect.Message) error { return set(*v)(to) }
	case kind == protoreflect.Int32Kind:
		v := flags.Int32(name, int32(number), help)
		in.zero = func() bool { return *v == 0 }
		in.put = func(to protoreflect.Message) error { return set(*v)(to) }
	case separated:
		read(flags.StringSlice(name, nil, help))
	case field.IsList() || field.IsMap():
		read(flags.StringArrayP(name, letter, nil, help))
	default:
		v := flags.StringP(name, letter, flag.GetDefault(), help)
		in.zero = func() bool { return *v == "" }
		in.put = func(to protoreflect.Message) error { return readForm(form, name, to, field, []string{*v}) }
	}
	if flag.GetRequired() {
		_ = cmd.MarkFlagRequired(name) // it is there
	}
	return in
}

// fill sets in a request what flags and arguments say: all flags, or those that are given.
func (f *form) fill(request protoreflect.Message, args []string, all bool) error {
	for _, in := range f.inputs {
		set := f.cmd.Flags().Changed(in.flag)
		if all && !in.optional {
			set = !in.zero()
		}
		if !set {
			continue
		}
		if err := in.put(enter(request, in.path)); err != nil {
			return cli.Usagef(f.cmd, "%v", err)
		}
	}
	for i := range args {
		path := f.args[min(i, len(f.args)-1)]
		last := len(path) - 1
		if path == nil {
			continue
		}
		if err := readForm(flagOf(path[last]).GetForm(), "", enter(request, path[:last]), path[last], args[i:i+1]); err != nil {
			return cli.Usagef(f.cmd, "%v", err)
		}
	}
	return nil
}

// enter returns the message at the end of a way from another.
func enter(m protoreflect.Message, path []protoreflect.FieldDescriptor) protoreflect.Message {
	for _, f := range path {
		m = m.Mutable(f).Message()
	}
	return m
}
