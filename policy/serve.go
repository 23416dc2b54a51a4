package policy

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// answer registers the handlers of the kind's methods. The error names the one whose messages
// do not have the forms that Kind describes.
func (p *Policy[M, T]) answer() error {
	k := &p.kind
	var none T
	if k.Set != nil {
		req, resp := k.Set.NewMessages()
		set := field(req, p.isObject(false))
		if _, ok := resp.(M); set == nil || !ok {
			return fmt.Errorf("%s: want a field with the %s, which it returns", k.Set.MethodName(), k.What)
		}
		weft.HandleAny(p.env, k.Set, func(ctx context.Context, req any) (any, error) {
			old, now, err := p.set(ctx, reflect(req).Get(set).Message().Interface().(M), p.changes(req))
			if err != nil {
				return nil, err
			}
			return p.answerTo(old, now), nil
		})
	}
	if k.Delete != nil {
		req, resp := k.Delete.NewMessages()
		deleted := reflect(resp).Descriptor().Fields().ByName("deleted")
		if deleted == nil || field(req, p.isStrange) != nil {
			return fmt.Errorf("%s: want fields that name the %s, and deleted in the answer", k.Delete.MethodName(), k.What)
		}
		weft.HandleAny(p.env, k.Delete, func(ctx context.Context, req any) (any, error) {
			old, err := p.delete(ctx, p.like(req).Interface().(M), p.changes(req))
			if err != nil {
				return nil, err
			}
			_, resp := k.Delete.NewMessages()
			reflect(resp).Set(deleted, protoreflect.ValueOfBool(old != none))
			return resp, nil
		})
	}
	if k.List != nil {
		req, resp := k.List.NewMessages()
		all := field(resp, p.isObject(true))
		if all == nil || field(req, p.isStrange) != nil {
			return fmt.Errorf("%s: want fields of those wanted, and a list of %s in the answer", k.List.MethodName(), k.Many)
		}
		weft.HandleAny(p.env, k.List, func(_ context.Context, req any) (any, error) {
			want := p.like(req)
			_, resp := k.List.NewMessages()
			list := reflect(resp).Mutable(all).List()
			for _, o := range p.list() {
				if has(k.Said(o).ProtoReflect(), want) {
					list.Append(protoreflect.ValueOfMessage(p.status(o).ProtoReflect()))
				}
			}
			return resp, nil
		})
	}
	return nil
}

// Answer registers the handler of another method that changes objects; it answers when the
// change is in force.
func Answer[M Message, T comparable, Req, Resp any](p *Policy[M, T], method api.Method[Req, Resp], f func(context.Context, *Req) (*Resp, error)) {
	weft.Handle(p.env, method, func(ctx context.Context, req *Req) (*Resp, error) {
		resp, err := f(ctx, req)
		if err != nil {
			return nil, err
		}
		p.Settle(ctx)
		return resp, nil
	})
}

func reflect(m any) protoreflect.Message { return m.(proto.Message).ProtoReflect() }

// field returns a field of a message, nil if there is none.
func field(m any, is func(protoreflect.FieldDescriptor) bool) protoreflect.FieldDescriptor {
	fields := reflect(m).Descriptor().Fields()
	for i := range fields.Len() {
		if is(fields.Get(i)) {
			return fields.Get(i)
		}
	}
	return nil
}

// isObject reports whether a field has an object, or a list of them.
func (p *Policy[M, T]) isObject(list bool) func(protoreflect.FieldDescriptor) bool {
	var object M
	name := object.ProtoReflect().Descriptor().FullName()
	return func(f protoreflect.FieldDescriptor) bool {
		return f.IsList() == list && f.Message() != nil && f.Message().FullName() == name
	}
}

// isStrange reports whether a field of a request is none of an object's message.
func (p *Policy[M, T]) isStrange(f protoreflect.FieldDescriptor) bool {
	var object M
	o := object.ProtoReflect().Descriptor().Fields().ByName(f.Name())
	return f.Name() != dryRun && (o == nil || o.Kind() != f.Kind())
}

const dryRun = "dry_run" // the field of a request that is to change nothing

// like returns an object's message with the fields of a request.
func (p *Policy[M, T]) like(req any) protoreflect.Message {
	var object M
	m := object.ProtoReflect().New()
	reflect(req).Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Name() != dryRun {
			m.Set(m.Descriptor().Fields().ByName(f.Name()), v)
		}
		return true
	})
	return m
}

// has reports whether a message has all that another has.
func has(m, want protoreflect.Message) bool {
	all := true
	want.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		all = all && m.Get(f).Equal(v)
		return all
	})
	return all
}
