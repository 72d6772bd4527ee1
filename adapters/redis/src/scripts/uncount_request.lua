-- Removes a request from the window KEYS[1]. ARGV: the time, the length of a window; in milliseconds. Returns whether
-- the window is open and contained a request.
local now, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local window = redis.call('HMGET', KEYS[1], 'began', 'used')
local began, used = tonumber(window[1]), tonumber(window[2])
if not began or now - began >= length or used == 0 then
    return 0
end
redis.call('HINCRBY', KEYS[1], 'used', -1)
return 1
