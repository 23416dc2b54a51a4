package deploy

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// share is the part of a request that concerns one partition.
type share struct {
	req proto.Message
	at  []int // indexes of its elements in the whole list
}

// divide divides a list of a request among partitions; it returns nothing if
// the list is empty. All other fields are the same in every share.
func divide(req proto.Message, list string, partition func(sw string) string) map[string]share {
	m := req.ProtoReflect()
	field := m.Descriptor().Fields().ByName(protoreflect.Name(list))
	whole := m.Get(field).List()
	shares := map[string]share{}
	for i := range whole.Len() {
		name := partition(dpidOf(field, whole.Get(i)))
		s, ok := shares[name]
		if !ok {
			s.req = proto.Clone(req)
			s.req.ProtoReflect().Clear(field)
		}
		s.req.ProtoReflect().Mutable(field).List().Append(whole.Get(i)) // shared: nobody modifies a request
		s.at = append(s.at, i)
		shares[name] = s
	}
	return shares
}

// dpidOf returns the DPID of an element of a list: the element itself, or a
// field of it.
func dpidOf(field protoreflect.FieldDescriptor, element protoreflect.Value) string {
	if field.Kind() != protoreflect.MessageKind {
		return element.String()
	}
	return textOf(element.Message(), "dpid")
}

// textIn returns a text field of a message; empty if it has no such field.
func textIn(msg proto.Message, field string) string { return textOf(msg.ProtoReflect(), field) }

func textOf(m protoreflect.Message, field string) string {
	if outer, inner, nested := strings.Cut(field, "."); nested {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(outer))
		if f == nil || f.Message() == nil || f.IsList() {
			return ""
		}
		return textOf(m.Get(f).Message(), inner)
	}
	f := m.Descriptor().Fields().ByName(protoreflect.Name(field))
	if field == "" || f == nil || f.Kind() != protoreflect.StringKind || f.IsList() {
		return ""
	}
	return m.Get(f).String()
}

// merge makes one response from the answers of several partitions.
func (c *directedCall) merge(answers []answer) proto.Message {
	_, empty := c.method.NewMessages()
	resp := empty.(proto.Message)
	into := resp.ProtoReflect()
	for i := range answers {
		a := &answers[i]
		if a.err != nil {
			if f := into.Descriptor().Fields().ByName(protoreflect.Name(c.direction.Incomplete)); f != nil {
				into.Mutable(f).List().Append(protoreflect.ValueOfString("partition " + a.partition + ": " + a.err.Error()))
			}
			continue
		}
		a.resp.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			name := string(f.Name())
			switch {
			case f.IsList():
				if slices.Contains(c.direction.Once, name) && into.Has(f) {
					return true
				}
				joined := into.Mutable(f).List()
				for k := range value.List().Len() {
					if c.counts(a.partition, f, value.List().Get(k)) {
						joined.Append(value.List().Get(k))
					}
				}
			case f.IsMap():
				m := into.Mutable(f).Map()
				value.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
					m.Set(k, sum(f.MapValue(), m.Get(k), v))
					return true
				})
			case slices.Contains(c.direction.Sums, name):
				into.Set(f, sum(f, into.Get(f), value))
			case !into.Has(f):
				into.Set(f, value)
			}
			return true
		})
	}
	into.Range(func(f protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if f.IsList() && f.Kind() == protoreflect.MessageKind {
			into.Set(f, protoreflect.ValueOfList(c.arrange(into.NewField(f).List(), value.List())))
		}
		return true
	})
	return resp
}

// counts reports whether a partition's information about a switch counts. A partition
// may also know switches of others. Fields that partitions have in common count.
func (c *directedCall) counts(partition string, f protoreflect.FieldDescriptor, element protoreflect.Value) bool {
	if f.Kind() != protoreflect.MessageKind || textOf(element.Message(), c.direction.Same) != "" || slices.Contains(c.direction.Once, string(f.Name())) {
		return true
	}
	sw := textOf(element.Message(), "dpid")
	return sw == "" || c.partition(sw) == partition
}

// arrange returns the elements of a joined list without duplicates, ordered by
// switch; the elements of a switch keep their order.
func (c *directedCall) arrange(out, list protoreflect.List) protoreflect.List {
	var all []protoreflect.Message
	first := map[string]int{}
	for i := range list.Len() {
		m := list.Get(i).Message()
		if id := textOf(m, c.direction.Same); id != "" {
			if at, twice := first[id]; twice {
				all[at] = c.both(all[at], m)
				continue
			}
			first[id] = len(all)
		}
		all = append(all, m)
	}
	if len(first) == 0 {
		slices.SortStableFunc(all, func(a, b protoreflect.Message) int {
			return cmp.Compare(textOf(a, "dpid"), textOf(b, "dpid"))
		})
	}
	for _, m := range all {
		out.Append(protoreflect.ValueOfMessage(m))
	}
	return out
}

// both merges two equal elements.
func (c *directedCall) both(a, b protoreflect.Message) protoreflect.Message {
	rank := func(m protoreflect.Message) int { return slices.Index(c.direction.States, textOf(m, "state")) }
	if rank(b) < rank(a) {
		a, b = b, a
	}
	both := proto.Clone(a.Interface()).ProtoReflect() // the answers must not be modified
	fields := both.Descriptor().Fields()
	for _, name := range []protoreflect.Name{"packets", "bytes"} {
		if f := fields.ByName(name); f != nil {
			both.Set(f, sum(f, both.Get(f), b.Get(f)))
		}
	}
	for i := range fields.Len() {
		f := fields.Get(i)
		if !f.IsList() || f.Message() == nil || len(c.direction.States) == 0 {
			continue
		}
		for k := range b.Get(f).List().Len() {
			both.Mutable(f).List().Append(b.Get(f).List().Get(k))
		}
		if list := both.Get(f).List(); list.Len() > 0 {
			both.Set(f, protoreflect.ValueOfList(c.arrange(both.NewField(f).List(), list)))
		}
	}
	return both
}

// sum adds two numbers of a field; for other types it returns the second value.
func sum(f protoreflect.FieldDescriptor, a, b protoreflect.Value) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(number(a) + b.Uint()))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(number(a) + b.Uint())
	}
	return b
}

// number returns a number; 0 if it is absent.
func number(v protoreflect.Value) uint64 {
	if !v.IsValid() {
		return 0
	}
	return v.Uint()
}

// inOrder puts the answers for the elements of a divided list at the places of
// those elements in the request.
func inOrder(resp proto.Message, field string, answers []answer, shares map[string]share) {
	m := resp.ProtoReflect()
	f := m.Descriptor().Fields().ByName(protoreflect.Name(field))
	total := 0
	for _, s := range shares {
		total += len(s.at)
	}
	whole := make([]protoreflect.Value, total)
	for _, a := range answers {
		list := a.resp.ProtoReflect().Get(f).List()
		for k, at := range shares[a.partition].at {
			if k < list.Len() {
				whole[at] = list.Get(k)
			}
		}
	}
	out := m.NewField(f).List()
	for _, v := range whole {
		if !v.IsValid() {
			v = out.NewElement()
		}
		out.Append(v)
	}
	m.Set(f, protoreflect.ValueOfList(out))
}

// unanswered is the answer for the elements of an unreachable partition.
func (c *directedCall) unanswered(count int, err error) proto.Message {
	_, empty := c.method.NewMessages()
	resp := empty.(proto.Message)
	m := resp.ProtoReflect()
	list := m.Mutable(m.Descriptor().Fields().ByName(protoreflect.Name(c.direction.Answers))).List()
	for range count {
		e := list.NewElement()
		e.Message().Set(e.Message().Descriptor().Fields().ByName(protoreflect.Name(c.direction.Error)), protoreflect.ValueOfString(err.Error()))
		list.Append(e)
	}
	return resp
}
