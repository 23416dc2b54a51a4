package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// kind is how the command handles the objects of one kind that people make. All
// kinds have the same verbs: list, get, delete and apply here, and add, whose
// flags are those of the kind.
type typedKind[M proto.Message] struct {
	known string // the command that lists them: "weft qos list"
	one   string // what one is called: "policy"
	key   string // of the list of them in an answer, and in a file: "policies"

	name   func(M) string
	list   func(c *cli.Controller) (proto.Message, error)
	set    func(c *cli.Controller, m M) (M, error)
	remove func(c *cli.Controller, m M) (cli.Deletion, error)
	table  func(t *cli.Table, list []M)
	// setAll and removeAll set and remove many objects in one call; nil: one by one.
	// fresh returns an object with the defaults; nil: an empty message.
	setAll    func(c *cli.Controller, list []M) error
	removeAll func(c *cli.Controller, list []M) error
	fresh     func() M
	foreign   func(m M) bool // it is shown, and not changed here
	// tidy brings an object into one form, without what the controller finds.
	tidy func(m M)
	// given names the fields that the controller sets where nothing is said.
	given []string
}

// of returns the objects of an answer.
func (k *typedKind[M]) of(m proto.Message) (list []M) {
	objects := m.ProtoReflect().Get(k.field(m)).List()
	for i := range objects.Len() {
		list = append(list, objects.Get(i).Message().Interface().(M))
	}
	return list
}

func (k *typedKind[M]) field(m proto.Message) protoreflect.FieldDescriptor {
	return m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(k.key))
}

// add makes the command that adds an object, which build makes of its flags.
func (k *typedKind[M]) add(r *cli.Remote, cmd *cobra.Command, build func(cmd *cobra.Command, args []string) (M, error)) *cobra.Command {
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := build(cmd, args)
		if err == nil {
			m, err = k.set(c, m)
		}
		return cli.View{Value: m, Text: func(t *cli.Table) { k.table(t, []M{m}) }}, err
	})
}

// delete makes the command that deletes an object, which its arguments name.
func (k *typedKind[M]) delete(r *cli.Remote, cmd *cobra.Command, named func(args []string) M) *cobra.Command {
	cmd.Args = cobra.ExactArgs(strings.Count(cmd.Use, " "))
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m := named(args)
		answer, err := k.remove(c, m)
		return cli.Deleted(answer, err, k.one+" "+k.name(m), k.known)
	})
}

// lists makes the command that lists all objects, or those of the name that is
// its argument.
func (k *typedKind[M]) lists(r *cli.Remote, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.MaximumNArgs(strings.Count(cmd.Use, " "))
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := k.list(c)
		if err != nil {
			return cli.View{}, err
		}
		list := k.of(m)
		if len(args) > 0 {
			if list, err = k.named(list, args[0]); err != nil {
				return cli.View{}, err
			}
			left := m.ProtoReflect().Mutable(k.field(m)).List()
			left.Truncate(0)
			for _, o := range list {
				left.Append(protoreflect.ValueOfMessage(o.ProtoReflect()))
			}
		}
		return cli.View{Value: m, Text: func(t *cli.Table) { k.table(t, list) }}, nil
	})
}

// get makes the command that shows one object.
func (k *typedKind[M]) get(r *cli.Remote, example string) *cobra.Command {
	cmd := &cobra.Command{Use: "get NAME", Short: "Show one " + k.one, Example: "  " + example, Args: cobra.ExactArgs(1)}
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := k.list(c)
		if err != nil {
			return cli.View{}, err
		}
		list, err := k.named(k.of(m), args[0])
		if err != nil {
			return cli.View{}, err
		}
		return cli.View{Value: list[0], Text: func(t *cli.Table) { k.table(t, list[:1]) }}, nil
	})
}

// named returns the objects of a name, or says that there is none.
func (k *typedKind[M]) named(list []M, name string) ([]M, error) {
	list = slices.DeleteFunc(slices.Clone(list), func(o M) bool { return k.name(o) != name })
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no %s %s; %s shows those that are", k.one, name, k.known)
	}
	return list, nil
}
