package main

import "fmt"

const tasksBlock = `
local before = std.time.now()
local all = {}
for i = 1, 1000 do
  all[i] = std.task.spawn(function()
    local ok = pcall(std.task.sleep, 50)
    return ok
  end)
end
for _, t in ipairs(all) do t:join() end
return (std.time.now() - before) * 1000`

// tasks is 1,000 tasks of one VM that wait at once.
func tasks(p place) ([]figure, error) {
	dir, err := p.sub("tasks")
	if err != nil {
		return nil, err
	}
	best := 0.0
	for range 3 {
		v, ws, err := block(dir, "", tasksBlock)
		if err != nil {
			return nil, err
		}
		if err := ws.Close(); err != nil {
			return nil, err
		}
		f, ok := v.(float64)
		if !ok {
			return nil, fmt.Errorf("the block gave %v", v)
		}
		if best == 0 || f < best {
			best = f
		}
	}
	return []figure{{what: "1,000 tasks that sleep 50 ms, in one VM", asked: 100, measured: best, unit: " ms"}}, nil
}
