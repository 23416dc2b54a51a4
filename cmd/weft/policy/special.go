package policy

import (
	"google.golang.org/protobuf/proto"
)

// What the .proto files cannot say of commands and objects is found here, by name.

// ownText writes what templates call {@name}.
func ownText(name string, m proto.Message) string {
	switch name {
	}
	panic("no text " + name)
}
