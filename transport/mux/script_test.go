package mux

import (
	"context"
	"io"
)

// nothing is a handler that does nothing.
type nothing struct{}

func (nothing) Call(context.Context, string, []byte) ([]byte, error) { return nil, nil }

// script is a link on which given messages come.
type script struct{ messages [][]byte }

func (s *script) Read() (*Buffer, error) {
	if len(s.messages) == 0 {
		return nil, io.EOF
	}
	b := NewBuffer(len(s.messages[0]))
	b.B = append(b.B, s.messages[0]...)
	s.messages = s.messages[1:]
	return b, nil
}

func (*script) Write(b *Buffer) error { b.Release(); return nil }
func (*script) Room(int) bool         { return true }
func (*script) Heard() uint64         { return 0 }
func (*script) Close() error          { return nil }
