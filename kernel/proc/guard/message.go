package guard

import (
	"encoding/binary"
	"errors"
)

// EnvName is the variable that a guard is started with, and Version its value: a
// host and a helper binary of different versions refuse each other.
const (
	EnvName = "ASHLAR_GUARD"
	Version = "1"
)

// MaxMessageBytes bounds one message. Linux takes at most 6 MiB of arguments and
// environment, and by default 2 MiB.
const MaxMessageBytes = 8 << 20

// Kind says what a Message is. The numbers are part of the protocol.
type Kind byte

// To the host: Hello, Started, Failed, Exited, Buried. To the guard: Config, Spawn, End.
const (
	// Hello is the guard's first word: the program did call Main.
	Hello Kind = iota + 1
	// Config names the starter. Path: its marker; Number: its first tag.
	Config
	// Spawn starts command ID: Path (the executable) with Argv in Dir with Env.
	// Files: how many descriptors come along, Flags: which.
	Spawn
	// Started says that command ID runs as process Number; sent only when asked for.
	Started
	// Failed says that command ID could not be started: Number is the errno.
	Failed
	// Exited says that command ID ended with the wait status Number.
	Exited
	// End ends command ID and everything that it started: SIGTERM, then SIGKILL
	// after Number nanoseconds; at once when that is 0.
	End
	// Buried answers End: Number processes of the command could not be killed.
	Buried
)

// What a Spawn asks for.
const (
	// WithStdin: the first descriptor is standard input; without it that is /dev/null.
	WithStdin = 1 << iota
	// WantStarted: answer with Started.
	WantStarted
)

// Message is one message of the protocol; what a kind does not name is zero.
type Message struct {
	Kind   Kind
	Flags  byte
	Files  byte
	ID     uint64
	Number int64
	Path   string
	Dir    string
	Argv   []string
	Env    []string
}

var errMalformed = errors.New("malformed guard message")

// encode writes m behind its length, a big-endian uint32.
func (m *Message) encode() ([]byte, error) {
	size := 64 + len(m.Path) + len(m.Dir)
	for _, list := range [][]string{m.Argv, m.Env} {
		for _, s := range list {
			size += len(s) + binary.MaxVarintLen32
		}
	}
	b := make([]byte, 4, size)
	b = append(b, byte(m.Kind), m.Flags, m.Files)
	b = binary.AppendUvarint(b, m.ID)
	b = binary.AppendVarint(b, m.Number)
	b = appendString(b, m.Path)
	b = appendString(b, m.Dir)
	for _, list := range [][]string{m.Argv, m.Env} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			b = appendString(b, s)
		}
	}
	if len(b)-4 > MaxMessageBytes {
		return nil, ErrTooLong
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ErrTooLong says that arguments and environment together exceed MaxMessageBytes.
var ErrTooLong = errors.New("arguments and environment are too long")

// decode reads one message without its length.
func decode(b []byte) (*Message, error) {
	r := reader{rest: b}
	m := &Message{Kind: Kind(r.byte()), Flags: r.byte(), Files: r.byte(), ID: r.uvarint(), Number: r.varint()}
	m.Path, m.Dir = r.string(), r.string()
	m.Argv, m.Env = r.strings(), r.strings()
	if r.failed || len(r.rest) != 0 {
		return nil, errMalformed
	}
	return m, nil
}

// reader takes values off a message; after a failure it gives zeros.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	return take(r, v, n)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	return take(r, v, n)
}

func take[T int64 | uint64](r *reader, v T, n int) T {
	if n <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *reader) strings() []string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) { // each string takes a byte at least
		r.failed, r.rest = true, nil
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, r.string())
	}
	return list
}
