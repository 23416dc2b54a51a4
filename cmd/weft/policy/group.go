package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// Commands returns the commands of the services whose .proto files say how they look
// (api.CommandGroup): those that are special, and beside them what is derived.
func Commands() (list []*cobra.Command) {
	protoregistry.GlobalFiles.RangeFilesByPackage("weft.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			groups := proto.GetExtension(s.Options(), api.E_Service).(*api.ServiceRules).GetGroups()
			if len(groups) == 0 {
				continue
			}
			list = append(list, serviceCommand(s, groups, groups[0].Command))
			if alias := groups[0].Alias; alias != "" {
				hidden := serviceCommand(s, groups, alias)
				hidden.Hidden = true
				list = append(list, hidden)
			}
		}
		return true
	})
	return list
}

// serviceCommand makes the commands of a service, by a word.
func serviceCommand(s protoreflect.ServiceDescriptor, groups []*api.CommandGroup, word string) *cobra.Command {
	var r cli.Remote
	top := &cobra.Command{Use: word}
	r.Flags(top)
	for _, g := range groups {
		c := top
		for _, word := range strings.Fields(g.Command)[1:] {
			c = subcommand(c, word)
		}
		c.Short, c.Long, c.Example = g.Short, g.Long, indent(g.Example)
	}
	top.AddCommand(specialCommands(s.Name(), &r)...)
	kinds := kindsOf(s)
	for i := range s.Methods().Len() {
		words := strings.Fields(api.RulesOf(api.MethodName(s.Methods().Get(i))).GetCommand())
		if help := helpOf(s.Methods().Get(i)); help != nil {
			parent := top
			for _, word := range words[1 : len(words)-1] {
				parent = subcommand(parent, word)
			}
			parent.AddCommand(methodCommand(&r, s.Methods().Get(i), kinds, words[len(words)-1]))
		}
	}
	for _, k := range kinds {
		if k.GetGet() != "" && !slices.ContainsFunc(top.Commands(), func(c *cobra.Command) bool { return c.Name() == "get" }) {
			top.AddCommand(k.getCommand(&r))
		}
	}
	if groups[0].Apply != "" {
		top.AddCommand(applyObjects(&r, "weft "+groups[0].Command, groups[0].Apply, kinds))
	}
	return top
}

// helpOf returns how the command of a method looks, nil if the .proto file does not say.
func helpOf(m protoreflect.MethodDescriptor) *api.CommandHelp {
	return proto.GetExtension(m.Options(), api.E_Help).(*api.CommandHelp)
}

// methodCommand makes the command that calls a method.
func methodCommand(r *cli.Remote, m protoreflect.MethodDescriptor, kinds []*kind, word string) *cobra.Command {
	help := helpOf(m)
	plain := help == nil
	if plain {
		help = plainHelp(m)
	}
	cmd := &cobra.Command{Use: word, Short: help.Short, Long: help.Long, Example: indent(help.Example)}
	own, f := specialOf(m.FullName()), newForm(cmd, m.Input(), help.Args)
	if own.flags != nil {
		own.flags(cmd)
	}
	if plain && len(f.inputs) == 0 {
		f.addPlain(m.Input())
	}
	var listed *kind // the objects that it lists
	if i := slices.IndexFunc(kinds, func(k *kind) bool { return k.list == m }); i >= 0 {
		listed = kinds[i]
	}
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		request := newMessage(m.Input())
		chosen := ""
		if listed != nil && help.Args == "[NAME]" {
			chosen, args = strings.Join(args, ""), nil
		}
		err := f.fill(request, args, true)
		if err == nil && own.check != nil {
			err = own.check(cmd, args, request.Interface())
		}
		if err != nil {
			return cli.View{}, err
		}
		answer, err := callMethod(c, m, request.Interface())
		if deletion, is := answer.(cli.Deletion); is && !plain {
			return viewDeletion(m, kinds, scope{Message: request}, deletion, err)
		}
		if err == nil && chosen != "" {
			err = listed.choose(answer, chosen)
		}
		if err != nil {
			return cli.View{}, err
		}
		v := cli.View{Value: answer, Text: func(t *cli.Table) { writeAnswer(t, answer.ProtoReflect()) }}
		switch dry := request.Descriptor().Fields().ByName("dry_run"); {
		case own.text != nil:
			v.Text = func(t *cli.Table) { own.text(t, request.Interface(), answer) }
		case dry != nil && request.Get(dry).Bool():
			v.Text = writeLine(answer, help.Dry)
		case help.Done != "":
			v.Text = writeLine(answer, help.Done)
		}
		if own.after != nil {
			if v.Failed, err = own.after(c, request.Interface(), answer); err != nil {
				return cli.View{}, err
			}
		}
		return v, nil
	})
}

// writeLine writes a template for people.
func writeLine(m proto.Message, template string) func(*cli.Table) {
	return func(t *cli.Table) {
		var cells []any
		for _, cell := range strings.Split(template, "\t") {
			cells = append(cells, scope{Message: m.ProtoReflect()}.expand(cell))
		}
		t.Row(cells...)
	}
}

// viewDeletion shows the answer to a deletion.
func viewDeletion(m protoreflect.MethodDescriptor, kinds []*kind, request scope, answer cli.Deletion, err error) (cli.View, error) {
	help := helpOf(m)
	what, list := request.expand(help.Deletes), help.List
	for _, k := range kinds {
		if k.remove == m && help.Deletes == "" {
			what, list = k.One+" "+request.expand(k.Name), k.listCommand()
		}
	}
	// A tenant goes with its networks.
	if n, is := answer.(interface{ GetNetworks() uint32 }); is && answer.GetDeleted() {
		what += " with " + cli.Several(n.GetNetworks(), "network", "networks")
	}
	if err == nil && !answer.GetDeleted() && help.None != "" {
		return cli.View{Value: answer, Text: writeLine(request.Interface(), help.None)}, nil
	}
	v, err := cli.Deleted(answer, err, what, "weft "+list)
	if dry := request.Descriptor().Fields().ByName("dry_run"); dry != nil && request.Get(dry).Bool() && answer.GetDeleted() {
		v.Text = func(t *cli.Table) { fmt.Fprintln(t, what, "would be deleted") }
	}
	return v, err
}
