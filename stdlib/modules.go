package stdlib

import (
	"ashlar/kernel/tool"
	"ashlar/stdlib/crypto"
	"ashlar/stdlib/env"
	"ashlar/stdlib/fs"
	"ashlar/stdlib/http"
	"ashlar/stdlib/job"
	"ashlar/stdlib/json"
	"ashlar/stdlib/knl"
	"ashlar/stdlib/llm"
	"ashlar/stdlib/log"
	"ashlar/stdlib/path"
	"ashlar/stdlib/re"
	"ashlar/stdlib/sh"
	stringmod "ashlar/stdlib/string"
	"ashlar/stdlib/task"
	"ashlar/stdlib/text"
	"ashlar/stdlib/time"
	"ashlar/stdlib/tmpl"
	"ashlar/stdlib/toml"
	toolmod "ashlar/stdlib/tool"
	"ashlar/stdlib/validate"
	"ashlar/stdlib/yaml"
	"ashlar/vm"
)

// Needs is what the namespaces need of the run that they are declared for. The zero
// value is good for the reference alone.
type Needs struct {
	Host    *vm.Host
	AgentID string
	Files   fs.Area
	Shell   sh.Shell
	Client  http.Client
	Bus     *tool.Bus
	Pool    toolmod.Pool // the run's budget; nil: none
	Kernel  *knl.Kernel
	Sender  *llm.Sender
	Learn   func(name, value string) // teaches the redactor a secret
}

// Modules declares every namespace, in the order of the reference.
func Modules(n Needs) []*vm.Module {
	return []*vm.Module{
		log.Module(),
		env.Module(n.AgentID),
		json.Module(n.Files),
		yaml.Module(),
		toml.Module(),
		path.Module(),
		stringmod.Module(),
		text.Module(),
		re.Module(),
		tmpl.Module(),
		validate.Module(),
		time.Module(),
		fs.Module(n.Files),
		crypto.Module(),
		task.Module(n.Host),
		http.Module(n.Client),
		sh.Module(n.Shell),
		toolmod.Module(n.Bus, n.Pool),
		llm.Module(n.Sender, n.Learn),
		knl.Module(n.Kernel, knl.Tools{
			Fields: toolmod.ContractFields(), ContractOf: toolmod.ContractOf, HandlerOf: toolmod.HandlerOf,
		}),
		job.Module(),
	}
}
