package lua

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"unsafe"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"ashlar/vm"
)

// Reading and compiling the embedded modules is a third of a short run, so the
// binary carries what the compiler makes of them. It is used only for exactly the
// source, and the compiler, that it was made of, and only from the binary: bytecode
// is trusted as it is.

// precompiledForm changes with the form of what Precompile writes, and with the
// version of gopher-lua.
const precompiledForm = "ashlar-lua-1 gopher-lua-1.1.2\n"

func sourceSum(chunk vm.Chunk) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(precompiledForm + chunk.Name + "\n"))
	h.Write(chunk.Source)
	return [sha256.Size]byte(h.Sum(nil))
}

// Precompile gives what Chunk.Compiled may hold for this name and source.
func Precompile(chunk vm.Chunk) ([]byte, error) {
	tree, err := parse.Parse(bytes.NewReader(chunk.Source), chunk.Name)
	if err != nil {
		return nil, syntaxError(chunk.Name, err)
	}
	proto, err := glua.Compile(tree, chunk.Name)
	if err != nil {
		return nil, syntaxError(chunk.Name, err)
	}
	sum := sourceSum(chunk)
	w := protoWriter{b: append([]byte(nil), sum[:]...)}
	w.proto(proto)
	return w.b, w.err
}

// precompiled gives the compiled form of a chunk; nil when it has none that fits.
func precompiled(chunk vm.Chunk) *glua.FunctionProto {
	if len(chunk.Compiled) < sha256.Size || sourceSum(chunk) != [sha256.Size]byte(chunk.Compiled) {
		return nil
	}
	r := protoReader{b: chunk.Compiled[sha256.Size:], source: chunk.Name}
	p := r.proto()
	if r.bad || len(r.b) != 0 {
		return nil
	}
	return p
}

type protoWriter struct {
	b   []byte
	err error
}

func (w *protoWriter) int(n int)       { w.b = binary.AppendUvarint(w.b, uint64(n)) }
func (w *protoWriter) text(s string)   { w.int(len(s)); w.b = append(w.b, s...) }
func (w *protoWriter) bytes(b ...byte) { w.b = append(w.b, b...) }

func (w *protoWriter) proto(p *glua.FunctionProto) {
	w.int(p.LineDefined)
	w.int(p.LastLineDefined)
	w.bytes(p.NumUpvalues, p.NumParameters, p.IsVarArg, p.NumUsedRegisters)
	w.int(len(p.Code))
	for _, c := range p.Code {
		w.b = binary.LittleEndian.AppendUint32(w.b, c)
	}
	w.int(len(p.Constants))
	for _, c := range p.Constants {
		switch v := c.(type) {
		case glua.LNumber:
			w.bytes(0)
			w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(float64(v)))
		case glua.LString:
			w.bytes(1)
			w.text(string(v))
		default:
			w.err = errors.New("a constant that is neither a number nor a string")
		}
	}
	w.int(len(p.DbgSourcePositions))
	for _, n := range p.DbgSourcePositions {
		w.int(n)
	}
	w.int(len(p.DbgLocals))
	for _, l := range p.DbgLocals {
		w.text(l.Name)
		w.int(l.StartPc)
		w.int(l.EndPc)
	}
	w.int(len(p.DbgCalls))
	for _, c := range p.DbgCalls {
		w.text(c.Name)
		w.int(c.Pc)
	}
	w.int(len(p.DbgUpvalues))
	for _, s := range p.DbgUpvalues {
		w.text(s)
	}
	w.int(len(p.FunctionPrototypes))
	for _, sub := range p.FunctionPrototypes {
		w.proto(sub)
	}
}

type protoReader struct {
	b      []byte
	source string
	bad    bool
}

func (r *protoReader) int() int {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > math.MaxInt32 {
		r.bad = true
		return 0
	}
	r.b = r.b[size:]
	return int(n)
}

// count is the length of a list, each element of which takes a byte at least.
func (r *protoReader) count() int {
	n := r.int()
	if n > len(r.b) {
		r.bad = true
		return 0
	}
	return n
}

func (r *protoReader) take(n int) []byte {
	if n > len(r.b) {
		r.bad = true
		return make([]byte, n)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *protoReader) text() string { return string(r.take(r.count())) }

func (r *protoReader) proto() *glua.FunctionProto {
	p := &glua.FunctionProto{SourceName: r.source, LineDefined: r.int(), LastLineDefined: r.int()}
	head := r.take(4)
	p.NumUpvalues, p.NumParameters, p.IsVarArg, p.NumUsedRegisters = head[0], head[1], head[2], head[3]
	p.Code = make([]uint32, r.count())
	for i := range p.Code {
		p.Code[i] = binary.LittleEndian.Uint32(r.take(4))
	}
	p.Constants = make([]glua.LValue, r.count())
	texts := make([]string, len(p.Constants))
	for i := range p.Constants {
		if r.take(1)[0] == 0 {
			p.Constants[i] = glua.LNumber(math.Float64frombits(binary.LittleEndian.Uint64(r.take(8))))
			continue
		}
		texts[i] = r.text()
		p.Constants[i] = glua.LString(texts[i])
	}
	*stringConstants(p) = texts
	p.DbgSourcePositions = make([]int, r.count())
	for i := range p.DbgSourcePositions {
		p.DbgSourcePositions[i] = r.int()
	}
	p.DbgLocals = make([]*glua.DbgLocalInfo, r.count())
	for i := range p.DbgLocals {
		p.DbgLocals[i] = &glua.DbgLocalInfo{Name: r.text(), StartPc: r.int(), EndPc: r.int()}
	}
	p.DbgCalls = make([]glua.DbgCall, r.count())
	for i := range p.DbgCalls {
		p.DbgCalls[i] = glua.DbgCall{Name: r.text(), Pc: r.int()}
	}
	p.DbgUpvalues = make([]string, r.count())
	for i := range p.DbgUpvalues {
		p.DbgUpvalues[i] = r.text()
	}
	p.FunctionPrototypes = make([]*glua.FunctionProto, r.count())
	for i := range p.FunctionPrototypes {
		if r.bad {
			return p
		}
		p.FunctionPrototypes[i] = r.proto()
	}
	return p
}

// stringConstantsAt is where a proto keeps its constants once more, as the strings
// that the instructions on globals and fields read; the field is not exported.
var stringConstantsAt = func() uintptr {
	f, ok := reflect.TypeFor[glua.FunctionProto]().FieldByName("stringConstants")
	if !ok || f.Type != reflect.TypeFor[[]string]() {
		panic("gopher-lua's FunctionProto has another form: change precompiled.go with it")
	}
	return f.Offset
}()

func stringConstants(p *glua.FunctionProto) *[]string {
	return (*[]string)(unsafe.Add(unsafe.Pointer(p), stringConstantsAt))
}
