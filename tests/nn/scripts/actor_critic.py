"""REINFORCE with a baseline on a corridor, in the style of PyTorch's reinforcement learning examples."""
from collections import namedtuple
from itertools import count
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.functional as F
import chainrule.optim as optim
from chainrule.distributions import Categorical, Normal

torch.manual_seed(0)
SavedAction = namedtuple('SavedAction', ['log_prob', 'value', 'entropy'])


class Corridor:
    """Walk right from the middle of 7 cells; each step costs."""

    def reset(self):
        self.place = 3
        return self.state()

    def state(self):
        x = torch.zeros(7)
        x[self.place] = 1
        return x

    def step(self, action):
        self.place += 1 if action == 1 else -1
        done = self.place in (0, 6)
        return self.state(), (1.0 if self.place == 6 else -0.05), done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(7, 32)
        self.action_head = nn.Linear(32, 2)
        self.value_head = nn.Linear(32, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model, env = Policy(), Corridor()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
running = 0.0
for episode in range(150):
    state, total = env.reset(), 0.0
    for t in range(40):
        probs, value = model(state)
        m = Categorical(probs)
        action = m.sample()
        model.saved_actions.append(SavedAction(m.log_prob(action), value, m.entropy()))
        state, reward, done = env.step(action.item())
        model.rewards.append(reward)
        total += reward
        if done:
            break
    R, returns = 0.0, []
    for r in model.rewards[::-1]:
        R = r + 0.95 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    policy_losses, value_losses = [], []
    for (log_prob, value, entropy), R in zip(model.saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage - 0.01 * entropy)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:], model.saved_actions[:]
    running = 0.1 * total + 0.9 * running
print('running reward', running)
assert running > 0.7
