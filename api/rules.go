package api

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// AnyMethod is a Method without its types.
type AnyMethod interface {
	MethodName() string
	NewMessages() (req, resp any)
}

// Methods returns all methods of the .proto files that do not stream.
func Methods() []AnyMethod { return methods }

// Subjects returns all events of the .proto files.
func Subjects() []AnySubject { return subjects }

// OptionalServices returns the services that the network works without.
func OptionalServices() []string {
	var list []string
	protoregistry.GlobalFiles.RangeFilesByPackage("weft.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			if proto.GetExtension(s.Options(), E_Service).(*ServiceRules).GetOptional() {
				list = append(list, strings.ToLower(string(s.Name())))
			}
		}
		return true
	})
	slices.Sort(list)
	return list
}

// Services returns the services of the .proto files that the controller answers.
func Services() []protoreflect.ServiceDescriptor { return servicesOf(false) }

// MachineServices returns the services of the .proto files that processes of a machine
// answer, not the controller. Their methods are not in Methods.
func MachineServices() []protoreflect.ServiceDescriptor { return servicesOf(true) }

// servicesOf returns the services, by name, that a machine's processes answer, or the others.
func servicesOf(machine bool) []protoreflect.ServiceDescriptor {
	var list []protoreflect.ServiceDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage("weft.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			if s := f.Services().Get(i); OnMachine(s) == machine {
				list = append(list, s)
			}
		}
		return true
	})
	slices.SortFunc(list, func(a, b protoreflect.ServiceDescriptor) int {
		return strings.Compare(string(a.Name()), string(b.Name()))
	})
	return list
}

// OnMachine reports whether a process of a machine answers a service.
func OnMachine(s protoreflect.ServiceDescriptor) bool {
	return proto.GetExtension(s.Options(), E_Service).(*ServiceRules).GetMachine()
}

// RulesOf returns what the .proto files say of a method, service.Method: who may
// call it, and which partitions are asked. Of a method that they do not have it
// says that only services of the partition may call it.
func RulesOf(method string) *MethodRules {
	if r, ok := rules()[method]; ok {
		return r
	}
	return &MethodRules{}
}

// HTTPRoute is how a method appears over HTTP.
type HTTPRoute struct {
	Verb, Path string // the path has fields of the request in braces
	Body       string // the field of the request that the body is; "*": the request; "": there is none
}

// Routes returns the routes of a method: those of its http option, whose form
// protoc-gen-methods has checked.
func (r *MethodRules) Routes() []HTTPRoute {
	var list []HTTPRoute
	for _, text := range r.GetHttp() {
		words := strings.Fields(text)
		route := HTTPRoute{Verb: words[0], Path: words[1]}
		switch {
		case len(words) == 3:
			route.Body = words[2]
		case route.Verb == http.MethodPost:
			route.Body = "*"
		}
		list = append(list, route)
	}
	return list
}

// Routings returns which partitions are asked, by method, of all methods that can
// be called from outside their server's partition.
func Routings() map[string]*Routing {
	all := map[string]*Routing{}
	for name, r := range rules() {
		if r.GetRoute() != nil {
			all[name] = r.Route
		}
	}
	return all
}

// MethodName returns the name of a method, service.Method.
func MethodName(m protoreflect.MethodDescriptor) string {
	return strings.ToLower(string(m.Parent().Name())) + "." + string(m.Name())
}

// rules are what the .proto files say of each method.
var rules = sync.OnceValue(func() map[string]*MethodRules {
	all := map[string]*MethodRules{
		Apply.Name: {Route: &Routing{}},
		Send.Name:  {Route: &Routing{}},
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("weft.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			list := f.Services().Get(i).Methods()
			for j := range list.Len() {
				all[MethodName(list.Get(j))] = proto.GetExtension(list.Get(j).Options(), E_Method).(*MethodRules)
			}
		}
		return true
	})
	return all
})
