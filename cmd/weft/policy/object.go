package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// kind is the objects of one kind that people make: messages that a method lists, and
// others set and delete.
type kind struct {
	*api.Table
	list, set, remove protoreflect.MethodDescriptor
	objects           protoreflect.FieldDescriptor // the list of them in an answer; its name is the key in a file
	object                                         // what is special
}

// kindsOf returns the kinds of objects that a service has.
func kindsOf(s protoreflect.ServiceDescriptor) (kinds []*kind) {
	for i := range s.Methods().Len() {
		list := s.Methods().Get(i)
		for j := range list.Output().Fields().Len() {
			f := list.Output().Fields().Get(j)
			if !strings.HasPrefix(string(list.Name()), "List") || !f.IsList() || f.Message() == nil || tableOf(f.Message()).GetOne() == "" {
				continue
			}
			k := &kind{Table: proto.CloneOf(tableOf(f.Message())), list: list, objects: f, object: objectOf(f.Message().Name())}
			k.Name = cmp.Or(k.Name, "{name}")
			k.findMethods(s.Methods())
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// findMethods finds the methods that set and delete an object: SetX takes one, DeleteX its
// name, where X is that of the message if nothing sets one alone.
func (k *kind) findMethods(methods protoreflect.MethodDescriptors) {
	k.remove = methods.ByName("Delete" + k.objects.Message().Name())
	for i := range methods.Len() {
		m := methods.Get(i)
		what, sets := strings.CutPrefix(string(m.Name()), "Set")
		for j := range m.Input().Fields().Len() {
			if f := m.Input().Fields().Get(j); sets && k.set == nil && f.Message() == k.objects.Message() && !f.IsList() {
				k.set, k.remove = m, methods.ByName(protoreflect.Name("Delete"+what))
			}
		}
	}
}

// listCommand returns the command that lists them, without weft.
func (k *kind) listCommand() string {
	return api.RulesOf(api.MethodName(k.list)).GetCommand()
}

// nameOf returns what an object is known by.
func (k *kind) nameOf(m proto.Message) string {
	return scope{Message: m.ProtoReflect()}.expand(k.Name)
}

// listAll asks for all objects.
func (k *kind) listAll(c *cli.Controller) (proto.Message, error) {
	return callMethod(c, k.list, newMessage(k.list.Input()).Interface())
}

// of returns the objects of an answer.
func (k *kind) of(answer proto.Message) (list []proto.Message) {
	for _, m := range messagesOf(answer.ProtoReflect().Get(k.objects).List()) {
		list = append(list, m.Interface())
	}
	return list
}

// put sets an object, and returns it as the controller has it.
func (k *kind) put(c *cli.Controller, m proto.Message) (proto.Message, error) {
	if k.object.set != nil {
		return k.object.set(c, m)
	}
	request := newMessage(k.set.Input())
	for i := range request.Descriptor().Fields().Len() {
		if f := request.Descriptor().Fields().Get(i); f.Message() == k.objects.Message() {
			request.Set(f, protoreflect.ValueOfMessage(m.ProtoReflect()))
		}
	}
	return callMethod(c, k.set, request.Interface())
}

// delete deletes an object.
func (k *kind) delete(c *cli.Controller, m proto.Message) error {
	if k.object.remove != nil {
		return k.object.remove(c, m)
	}
	request := newMessage(k.remove.Input())
	for i := range request.Descriptor().Fields().Len() {
		key := request.Descriptor().Fields().Get(i)
		if f := m.ProtoReflect().Descriptor().Fields().ByName(key.Name()); f != nil {
			request.Set(key, m.ProtoReflect().Get(f))
		}
	}
	_, err := callMethod(c, k.remove, request.Interface())
	return err
}

// choose leaves in an answer the objects of a name, or says that there is none.
func (k *kind) choose(answer proto.Message, name string) error {
	list := k.of(answer)
	left := answer.ProtoReflect().Mutable(k.objects).List()
	left.Truncate(0)
	for _, m := range list {
		if k.nameOf(m) == name {
			left.Append(protoreflect.ValueOfMessage(m.ProtoReflect()))
		}
	}
	if left.Len() == 0 {
		return fmt.Errorf("there is no %s %s; weft %s shows those that are", k.One, name, k.listCommand())
	}
	return nil
}

// indent indents the examples of a command.
func indent(example string) string {
	if example == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(example, "\n", "\n  ")
}

// getCommand makes the command that shows one object.
func (k *kind) getCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{Use: "get NAME", Short: "Show one " + k.One, Example: indent(k.Get), Args: cobra.ExactArgs(1)}
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		answer, err := k.listAll(c)
		if err == nil {
			err = k.choose(answer, args[0])
		}
		if err != nil {
			return cli.View{}, err
		}
		m := k.of(answer)[0]
		return cli.View{Value: m, Text: func(t *cli.Table) { writeAnswer(t, m.ProtoReflect()) }}, nil
	})
}

// callMethod calls a method of the controller.
func callMethod(c *cli.Controller, m protoreflect.MethodDescriptor, request proto.Message) (proto.Message, error) {
	answer := newMessage(m.Output()).Interface()
	return answer, c.Invoke(c.Ctx, fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()), request, answer)
}

// newMessage returns an empty message of a type.
func newMessage(d protoreflect.MessageDescriptor) protoreflect.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err) // the Go of the .proto files has it
	}
	return t.New()
}
