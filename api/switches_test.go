package api_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
)

// TestSwitchesOfMethods checks that the fields which name the switches that a
// method changes exist in its request, and are texts: an app's rights depend on
// them.
func TestSwitchesOfMethods(t *testing.T) {
	some := 0
	for _, m := range api.Methods() {
		rules := api.RulesOf(m.MethodName())
		for _, path := range rules.GetSwitches() {
			some++
			req, _ := m.NewMessages()
			at := req.(proto.Message).ProtoReflect().Descriptor()
			var f protoreflect.FieldDescriptor
			for name := range strings.SplitSeq(path, ".") {
				if at == nil {
					t.Fatalf("%s: switches: %s goes below a field that is no message", m.MethodName(), path)
				}
				if f = at.Fields().ByName(protoreflect.Name(name)); f == nil || f.IsMap() {
					t.Fatalf("%s: switches: %s: there is no such field in %s", m.MethodName(), path, at.Name())
				}
				at = f.Message()
			}
			if f.Kind() != protoreflect.StringKind {
				t.Errorf("%s: switches: %s is of kind %v, want a string", m.MethodName(), path, f.Kind())
			}
			if !rules.GetChanges() {
				t.Errorf("%s changes nothing, and has switches", m.MethodName())
			}
		}
	}
	if some == 0 {
		t.Error("no method has switches")
	}
}
